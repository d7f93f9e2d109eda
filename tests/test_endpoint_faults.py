"""Faulty model endpoints: received text is kept, the turn ends in the right state, and other people do not wait."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests import server
from tests.fake_endpoint import FakeEndpoint
from tests.server import Cato, Client, wait_for
from tests.socket import open_socket

KEY = "faulty"
SAID = "Behind the clock."
SAVED = "The partial answer was saved."


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeEndpoint) -> Iterator[Cato]:
    """Start a Cato with an endpoint timeout of two seconds and answers of at most 20,000 characters."""
    with server.running(
        tmp_path_factory.mktemp("faulty"),
        # By name, because clients keep no cookies of addresses.
        OPENAI_BASE_URL=endpoint.openai_url.replace("127.0.0.1", "localhost"),
        OPENAI_API_KEY=KEY,
        CATO_LLM_MODEL="fake",
        CATO_LLM_TIMEOUT_SECONDS="2",
        CATO_CHAT_MAX_ANSWER_CHARS="20000",
        CATO_CHAT_MESSAGES_PER_MINUTE="100000",
        CATO_API_REQUESTS_PER_MINUTE="100000",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ada(faulty: Cato) -> Client:
    return faulty.set_up("Ada Admin")


@pytest.fixture(scope="module")
def api_client(ada: Client) -> httpx.Client:
    return ada.api_client()


@pytest.fixture(autouse=True)
def reset_endpoint(endpoint: FakeEndpoint) -> None:
    endpoint.script(KEY)
    endpoint.clear(KEY)


def ask(api_client: httpx.Client, endpoint: FakeEndpoint, mode: str) -> Any:
    endpoint.script(KEY, mode=mode)
    answer = api_client.post("/api/ask", json={"message": f"Where is the key? ({mode})"})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("mode", "finish_reason"),
    [
        ("length", "length"),
        ("model-length", "length"),
        ("content-filter", "content_filter"),
        *(
            (mode, "stop")
            for mode in (
                "tool-calls", "usage-text", "usage-null", "usage-half", "usage-list", "usage-infinite", "usage-huge",
                "usage-digits", "usage-negative", "usage-deep", "after-done", "two-lines", "no-blank-lines", "no-done",
                "break-after-finish", "comments", "cookie",
            )
        ),
    ],
)  # fmt: skip
def test_a_complete_answer_is_complete_whatever_follows(api_client, endpoint, mode, finish_reason):
    turn = ask(api_client, endpoint, mode)

    assert (turn["state"], turn["answer"], turn["finish_reason"]) == ("complete", SAID, finish_reason)
    assert turn["error"] is None
    assert turn["usage"] in ({}, {"prompt_tokens": 3, "completion_tokens": 4})


@pytest.mark.parametrize(("mode", "answer"), [("single-bytes", "Grüße 🐈"), ("odd-text", "ab🐈 c")])
def test_characters_split_between_chunks_are_joined(api_client, endpoint, mode, answer):
    turn = ask(api_client, endpoint, mode)
    assert (turn["state"], turn["answer"]) == ("complete", answer)


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("error-object", "The model's server failed in the middle of the answer."),
        ("error-text", "The model's server failed in the middle of the answer."),
        ("event-limited-midway", "Rate limited by the model endpoint. Try again."),
        ("reset", "The answer was cut off."),
        ("no-finish", "The answer was cut off."),
        ("finish-error", "The answer was cut off."),
        ("finish-overloaded", "The answer was cut off."),
        ("hang-midway", "The model sent nothing for 2 seconds. Try again."),
        *(
            (mode, "The model's answer could not be read. Try again.")
            for mode in ("deep", "choices-object", "choice-null", "content-number", "content-list", "null")
        ),
    ],
)
def test_an_interrupted_answer_keeps_the_received_text_and_shows_the_reason(api_client, endpoint, mode, sentence):
    turn = ask(api_client, endpoint, mode)

    assert (turn["state"], turn["answer"], turn["finish_reason"]) == ("failed", SAID, "")
    assert turn["error"]["message"] == f"{sentence} {SAVED}"


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("html", "sent no answer"),
        ("json", "sent no answer"),
        ("empty", "sent no answer"),
        ("finish-error-silent", "sent no answer"),
        ("usage-alone", "sent no answer"),
        ("event-error", "sent no answer"),
        ("event-limited", "Rate limited by the model endpoint. Try again."),
        ("event-too-long", "Send less, or choose another model."),
        ("hang", "The model sent nothing for 2 seconds. Try again."),
        ("bad-gateway", "The model's server failed (HTTP 502). Try again."),
        ("error-503", "The model's server failed (HTTP 503). Try again in 1 second."),
        ("busy", "The model's server failed (HTTP 503). Try again in 20 seconds."),
        ("error-400", "rejected the request (HTTP 400)"),
        ("error-403", "refuses the API key"),
        ("redirect-302", "redirects to another address (HTTP 302)"),
        ("redirect-307", "redirects to another address (HTTP 307)"),
        ("redirect-308", "redirects to another address (HTTP 308)"),
        ("gzip-bomb", "sends compressed answers, which Cato does not read"),
        ("error-bomb", "The model's server failed (HTTP 500). Try again."),
        ("line-without-end", "could not be read"),
        ("length-silent", "The model reached its limit before it answered."),
        ("filter-silent", "withheld the answer"),
        ("endless-blank", "reached its limit before it answered"),
    ],
)
def test_a_failure_without_text_reports_only_what_happened(api_client, endpoint, mode, sentence):
    turn = ask(api_client, endpoint, mode)

    assert turn["state"] == "failed"
    assert turn["answer"].strip() == ""
    assert sentence in turn["error"]["message"]
    assert SAVED not in turn["error"]["message"]
    assert len(endpoint.requests(KEY, "/elsewhere/v1/chat/completions")) == 0


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (20, "Try again in 20 seconds."),
        (1, "Try again in 1 second."),
        (600, "Try again in 10 minutes."),
        (10**9, "by the model endpoint. Try again."),
        (-5, "by the model endpoint. Try again."),
    ],
)
def test_a_rate_limit_shows_when_to_retry(api_client, endpoint, seconds, sentence):
    endpoint.script(KEY, mode="error-429", retry_after=seconds)
    turn = api_client.post("/api/ask", json={"message": "Now?"}).json()
    assert turn["error"]["message"].endswith(sentence)


def test_an_answer_that_has_begun_with_reasoning_is_not_requested_again(api_client, endpoint):
    turn = ask(api_client, endpoint, "event-rejected-midway")

    assert "rejected the request (HTTP 400)" in turn["error"]["message"]
    assert len(endpoint.requests(KEY)) == 1


def test_cookies_of_an_endpoint_are_not_sent_back(api_client, endpoint):
    ask(api_client, endpoint, "cookie")
    assert ask(api_client, endpoint, "no-done")["state"] == "complete"
    assert len(endpoint.requests(KEY)) == 2
    assert endpoint.requests(KEY, "cookie") == []


@pytest.mark.parametrize("mode", ["endless", "large-delta"])
def test_an_infinite_answer_is_cut_off_at_the_maximum_length(api_client, endpoint, mode):
    turn = ask(api_client, endpoint, mode)
    assert (turn["state"], turn["finish_reason"], len(turn["answer"])) == ("complete", "length", 20_000)


def test_a_truncated_answer_is_marked_live_and_after_a_reload_and_can_be_resumed(ada, endpoint):
    endpoint.script(KEY, mode="length")
    thread = ada.send_message("Where does the key hang?")
    with open_socket(ada, thread) as socket:
        socket.hello()
        socket.until("Cut off at the model&#x27;s limit.")
    page = ada.thread_page(thread)
    assert "Cut off at the model&#x27;s limit." in page
    assert ">Resume answer<" in page

    endpoint.script(KEY, answer=" In the hall.")
    ada.post(re.search(r'formaction="(/t/[^"]+/resume)"', page)[1], htmx=True)
    completed = wait_for(
        lambda: (p := ada.thread_page(thread)) and "In the hall." in p and 'class="turn__actions"' in p and p, "it"
    )
    assert f"{SAID} In the hall." in completed
    assert "Cut off" not in completed


def test_an_answer_stopped_by_the_content_filter_is_marked(ada, endpoint):
    endpoint.script(KEY, mode="content-filter")
    thread = ada.send_message("Where does the key hang?")
    wait_for(lambda: "Cut off by the content filter" in ada.thread_page(thread), "the note")
    assert "/resume" not in ada.thread_page(thread)


def test_openai_clients_receive_the_finish_reason(api_client, endpoint):
    endpoint.script(KEY, mode="length")
    body = {"model": "cato", "messages": [{"role": "user", "content": "Where?"}]}
    assert api_client.post("/v1/chat/completions", json=body).json()["choices"][0]["finish_reason"] == "length"

    streamed = api_client.post("/v1/chat/completions", json=body | {"stream": True}).text
    assert re.findall(r'"finish_reason": "(\w+)"', streamed) == ["length"]


def test_stop_ends_an_answer_that_sends_only_comments(ada, endpoint):
    endpoint.script(KEY, mode="endless-comments")
    thread = ada.send_message("Say something")
    stop = wait_for(lambda: re.search(r'formaction="(/t/[^"]+/stop)"', ada.thread_page(thread)), "a Stop button")
    time.sleep(0.5)
    ada.post(stop[1], htmx=True)
    wait_for(lambda: ">Stopped by Ada Admin<" in ada.thread_page(thread), "it to stop")
    assert httpx.get(f"{ada.url}/healthz").is_success

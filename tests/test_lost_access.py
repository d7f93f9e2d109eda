"""Permissions are checked when used: an answer ends once its author loses the thread or the token is revoked."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.groups import make_group, person_id, remove_from_group, start_thread
from tests.server import Cato, Client, wait_for

KEY = "cato"
LONG = " ".join(f"word{number}" for number in range(150))
HIDDEN = "ZEBRALATE"


@pytest.fixture(autouse=True)
def slow_answers(endpoint: Any) -> Iterator[None]:
    """Let an answer take half a minute."""
    endpoint.script(KEY, answer=LONG, token_delay=0.2)
    yield
    endpoint.script(KEY)


@pytest.fixture
def crew(cato: Cato, administrator: Client, alice: Client, bob: Client) -> str:
    return make_group(cato, administrator, alice, bob)


@pytest.fixture
def thread(alice: Client, crew: str) -> str:
    """Return Alice's thread in the group, with its first answer stopped."""
    thread = start_thread(alice, crew, "What is the plan?")
    stop_all(alice, thread)
    return thread


def running_turn(cato: Cato, thread: str) -> str | None:
    query = "SELECT id FROM chat_turn WHERE thread_id = ? AND state IN ('recalling', 'answering')"
    rows = cato.sql(query, uuid.UUID(thread).hex)
    return str(uuid.UUID(str(rows[0][0]))) if rows else None


def stop_all(person: Client, thread: str) -> None:
    """Stop the thread's running answers on its page."""
    page = person.thread_page(thread)
    stop = page.split('class="send-button send-button--stop"')[1].split('formaction="')[1].split('"')[0]
    person.post(stop)
    wait_for(lambda: "send-button--stop" not in person.thread_page(thread), "the answer to stop")


def states(cato: Cato, thread: str) -> list[tuple[str, str, str]]:
    query = "SELECT state, error_code, answer FROM chat_turn WHERE thread_id = ? ORDER BY position"
    return [tuple(row) for row in cato.sql(query, uuid.UUID(thread).hex)]


class AnswerReader(threading.Thread):
    """Reads an answer in a thread of its own, streamed or complete."""

    def __init__(self, api_client: httpx.Client, path: str, body: dict[str, Any], **headers: str) -> None:
        super().__init__()
        self.api_client, self.path, self.body, self.headers = api_client, path, body, headers
        self.text = ""
        self.start()

    def run(self) -> None:
        with self.api_client.stream("POST", self.path, json=self.body, headers=self.headers, timeout=60) as response:
            for part in response.iter_text():
                self.text += part


def read_by_api(thread: str, stream: bool) -> tuple[str, dict[str, Any], dict[str, str]]:
    return f"/api/threads/{thread}/ask", {"message": "Tell me all of it", "stream": stream}, {}


def read_by_openai_api(thread: str, stream: bool) -> tuple[str, dict[str, Any], dict[str, str]]:
    body = {"model": "cato", "messages": [{"role": "user", "content": "Tell me all of it"}], "stream": stream}
    return "/v1/chat/completions", body, {"X-Cato-Thread": thread}


REQUESTS = [read_by_api, read_by_openai_api]


@pytest.mark.parametrize("request_of", REQUESTS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_removed_group_member_receives_no_more_of_an_answer(
    cato: Cato, administrator: Client, bob: Client, crew: str, thread: str, request_of: Callable[..., Any], stream: bool
) -> None:
    path, body, headers = request_of(thread, stream)
    reading = AnswerReader(bob.api_client("ask"), path, body, **headers)
    wait_for(lambda: "word2" in states(cato, thread)[-1][2], "the answer to begin")
    remove_from_group(cato, administrator, crew, bob)
    reading.join(20)

    assert "word149" not in reading.text
    assert stream or "word2" not in reading.text
    wait_for(lambda: states(cato, thread)[-1][:2] == ("stopped", "access_lost"), "the answer to end")


@pytest.mark.parametrize("request_of", REQUESTS)
def test_an_answer_ends_when_its_token_is_revoked(
    cato: Cato, administrator: Client, bob: Client, thread: str, request_of: Callable[..., Any]
) -> None:
    path, body, headers = request_of(thread, True)
    reading = AnswerReader(bob.api_client("ask"), path, body, **headers)
    wait_for(lambda: "word2" in states(cato, thread)[-1][2], "the answer to begin")
    revoke_token(cato, administrator, bob)
    reading.join(20)

    assert "word149" not in reading.text
    wait_for(lambda: states(cato, thread)[-1][:2] == ("stopped", "access_lost"), "the answer to end")


def revoke_token(cato: Cato, administrator: Client, person: Client) -> None:
    query = "SELECT id FROM people_apitoken WHERE person_id = ?"
    ((token,),) = cato.sql(query, uuid.UUID(person_id(cato, person)).hex)
    person.post("/settings/tokens/revoke", {"token": str(uuid.UUID(str(token)))})


def deactivate(cato: Cato, administrator: Client, person: Client) -> None:
    administrator.post(f"/admin/people/{person_id(cato, person)}/active", {"active": "no"})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("end_access", [revoke_token, deactivate])
def test_a_background_request_ends_with_an_error_once_its_token_is_not_valid(
    cato: Cato, administrator: Client, bob: Client, endpoint: Any, end_access: Callable[..., None], stream: bool
) -> None:
    question = f"Tell me all of it {uuid.uuid4()}"
    body = {"model": "cato", "messages": [{"role": "user", "content": question}], "stream": stream}
    background = {"X-Cato-Background": "yes"}
    reading = AnswerReader(bob.api_client("ask"), "/v1/chat/completions", body, **background)
    wait_for(lambda: question in json.dumps(endpoint.requests(KEY)), "the endpoint to be asked")
    end_access(cato, administrator, bob)
    reading.join(20)

    assert "invalid_api_key" in reading.text
    assert "word149" not in reading.text


def test_an_answer_requested_on_a_page_ends_when_its_author_is_deactivated(
    cato: Cato, administrator: Client, alice: Client, bob: Client, thread: str
) -> None:
    bob.send_message("Tell me all of it", thread=thread)
    wait_for(lambda: "word2" in states(cato, thread)[-1][2], "the answer to begin")
    deactivate(cato, administrator, bob)

    wait_for(lambda: states(cato, thread)[-1][:2] == ("stopped", "access_lost"), "the answer to end")
    assert "the person who asked no longer has access" in alice.thread_page(thread)


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_queued_turn_of_a_removed_author_recalls_nothing_added_since(
    cato: Cato,
    administrator: Client,
    alice: Client,
    bob: Client,
    crew: str,
    thread: str,
    endpoint: Any,
    request_of: Callable[..., Any],
) -> None:
    alice.send_message("Keep the model busy", thread=thread)
    wait_for(lambda: running_turn(cato, thread), "the answer to begin")
    path, body, headers = request_of(thread, True)
    question = f"What is the {HIDDEN} code?"
    body = json.loads(json.dumps(body).replace("Tell me all of it", question))
    reading = AnswerReader(bob.api_client("ask"), path, body, **headers)
    wait_for(lambda: states(cato, thread)[-1][0] == "queued", "the question to wait")
    remove_from_group(cato, administrator, crew, bob)
    note = alice.api_client().post("/api/exchanges", json={"text": f"The {HIDDEN} code is swordfish.", "space": crew})
    assert note.is_success, note.text
    stop_all(alice, thread)
    reading.join(20)

    wait_for(lambda: states(cato, thread)[-1] == ("stopped", "access_lost", ""), "the question to be ended")
    assert "swordfish" not in reading.text
    assert question not in str(endpoint.requests(KEY))


def test_the_next_turn_in_the_queue_is_still_answered(
    cato: Cato, administrator: Client, alice: Client, bob: Client, crew: str, thread: str, endpoint: Any
) -> None:
    alice.send_message("Keep the model busy", thread=thread)
    wait_for(lambda: running_turn(cato, thread), "the answer to begin")
    bob.send_message("Asked by who is about to leave", thread=thread)
    alice.send_message("Asked by who stays", thread=thread)
    remove_from_group(cato, administrator, crew, bob)
    endpoint.script(KEY, answer="All right.")
    stop_all(alice, thread)

    wait_for(lambda: states(cato, thread)[-1][::2] == ("complete", "All right."), "Alice's question to be answered")
    assert states(cato, thread)[-2] == ("stopped", "access_lost", "")


@pytest.fixture
def lost_conversation(
    cato: Cato, administrator: Client, bob: Client, crew: str, endpoint: Any
) -> tuple[httpx.Client, dict[str, Any], dict[str, str], str]:
    """Return the client, body and headers of Bob's request, and its thread, which he moved to a group and then left."""
    endpoint.script(KEY, answer="The code is swordfish.")
    client, headers = bob.api_client("ask"), {"Idempotency-Key": uuid.uuid4().hex}
    question = {"role": "user", "content": f"What is the code? {uuid.uuid4()}"}
    body = {"model": "cato", "messages": [question]}
    responses = [client.post("/v1/chat/completions", json=body, headers=headers) for _ in range(2)]
    assert ["swordfish" in response.text for response in responses] == [True, True]
    moved = responses[0].headers["X-Cato-Thread"]
    bob.post(f"/t/{moved}/move", {"space": crew})
    remove_from_group(cato, administrator, crew, bob)
    assert bob.get(f"/t/{moved}").status_code == 404
    return client, body, headers, moved


@pytest.mark.parametrize("stream", [True, False])
def test_a_repeated_request_returns_no_answer_of_a_thread_that_was_lost(lost_conversation: Any, stream: bool) -> None:
    client, body, headers, _thread = lost_conversation
    repeated = client.post("/v1/chat/completions", json=body | {"stream": stream}, headers=headers)
    assert "swordfish" not in repeated.text
    assert repeated.status_code == 404


def test_a_conversation_whose_thread_was_lost_continues_in_another_one(lost_conversation: Any) -> None:
    client, body, _headers, lost_thread = lost_conversation
    answer = {"role": "assistant", "content": "The code is swordfish."}
    messages = [*body["messages"], answer, {"role": "user", "content": "Are you sure?"}]
    response = client.post("/v1/chat/completions", json=body | {"messages": messages})
    assert response.status_code == 200, response.text
    assert response.headers["X-Cato-Thread"] != lost_thread

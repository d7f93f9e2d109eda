"""The OpenAI-compatible API, tested with OpenAI's own client."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest
from django.test import Client
from openai import OpenAI

from cato_web.openai_api import models, responses
from chat.answers import runner
from chat.executors import run_in_db_thread
from chat.services import ClientConversation, submit_conversation
from memory.models import Exchange
from tests import server
from tests.factories import PNG, PersonFactory, api_client
from tests.fake_endpoint import token_logprobs
from tests.server import wait_for
from tests.tokens import create_tokens

KEY = "cato"


@pytest.fixture(autouse=True)
def plain_answers(endpoint):
    endpoint.script(KEY, answer="All right.")


@pytest.fixture(scope="module")
def people(cato, administrator):
    """Return tokens by name: Alice and Bob with all scopes, and one of Alice's that only reads."""
    alice, bob = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    of_alice, reading, asking = create_tokens(cato, alice, "read write ask", "read", "ask")
    (of_bob,) = create_tokens(cato, bob, "read write ask")
    return {"alice": alice, "token": of_alice, "reading": reading, "asking": asking, "bob": of_bob}


@pytest.fixture(scope="module")
def alice(people) -> server.Client:
    return people["alice"]


def client_of(cato, token: str) -> OpenAI:
    return OpenAI(base_url=f"{cato.url}/v1", api_key=token, max_retries=0, timeout=30)


@pytest.fixture(scope="module")
def client(cato, people) -> OpenAI:
    return client_of(cato, people["token"])


def user(text: str | list[dict]) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def ask(client: OpenAI, *messages, **options):
    return client.chat.completions.create(model=options.pop("model", "cato"), messages=list(messages), **options)


def thread_of(answer) -> str:
    return answer.cato["thread"]


def active_turns(cato, thread: str) -> list[tuple[str, str]]:
    """Return messages and answers of the thread's active branch, in order."""
    query = "SELECT message, answer FROM chat_turn WHERE thread_id = ? AND is_on_active_branch ORDER BY position"
    return cato.sql(query, uuid.UUID(thread).hex)


def findable_texts(cato, thread: str) -> list[str]:
    """Return the thread's exchanges that memory may find."""
    query = "SELECT user_message, assistant_message FROM memory_exchange WHERE thread_id = ? AND NOT is_inactive"
    return sorted(f"{message} {answer}" for message, answer in cato.sql(query, uuid.UUID(thread).hex))


def prompt_of(endpoint) -> list[dict]:
    return endpoint.requests(KEY)[-1]["messages"]


def unique(text: str) -> str:
    """Return a unique text: an equal conversation would be recognised as the same thread."""
    return f"{text} ({uuid.uuid4().hex[:6]})"


def test_an_answer_has_openais_format_and_a_new_thread(client, cato, alice, endpoint):
    endpoint.script(KEY, answer="The tide turns at four.")
    question = unique("When does the tide turn?")
    answer = ask(client, user(question), temperature=0.1, max_tokens=5)

    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "The tide turns at four."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    page = alice.thread_page(thread_of(answer))
    assert question in page
    assert "The tide turns at four." in page


def test_a_streamed_answer_arrives_in_parts_and_ends_with_its_usage(client, endpoint):
    endpoint.script(KEY, answer="One word after the other.", token_delay=0.1)
    stream = ask(client, user(unique("Slowly")), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)

    parts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(parts) == "One word after the other."
    assert len(parts) > 2
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5
    assert len({chunk.id for chunk in chunks}) == 1


def test_usage_has_the_details_of_the_model_endpoint(client, endpoint):
    plausible = {"prompt_tokens_details": {"cached_tokens": 3, "other": "x"}}
    endpoint.script(KEY, usage_details=plausible | {"completion_tokens_details": {"reasoning_tokens": -1}})
    usage = ask(client, user(unique("How much?"))).usage

    assert usage.prompt_tokens_details.cached_tokens == 3
    assert usage.prompt_tokens_details.model_extra == {}
    assert usage.completion_tokens_details is None, "an impossible count"


def test_options_of_the_model_are_passed_on(client, endpoint):
    schema = {"type": "json_schema", "json_schema": {"name": "key", "schema": {"type": "object"}}}
    passed_on = {"top_p": 0.5, "seed": 7, "stop": ["quick"], "presence_penalty": 1.0, "frequency_penalty": -1.0}
    passed_on |= {"temperature": 0.0, "reasoning_effort": "low", "response_format": schema}
    ask(client, user(unique("With options")), **passed_on, max_tokens=3)
    request = endpoint.requests(KEY)[-1]

    assert {name: request.get(name) for name in passed_on} == passed_on
    assert request["max_tokens"] == 3
    ask(client, user(unique("Long")), max_completion_tokens=1_000_000)
    request = endpoint.requests(KEY)[-1]
    assert request["max_tokens"] == 4000, "the configured limit"
    assert request["temperature"] == 1.0, "the configured one"
    assert "stop" not in request


LOGPROBS = {"logprobs": True, "top_logprobs": 2}


def expected_logprobs(tokens: list[str], field: str = "content") -> list[dict]:
    return [token_logprobs(token, LOGPROBS, field)[field][0] for token in tokens]


def test_logprobs_are_those_of_the_model_for_each_token(client, endpoint):
    endpoint.script(KEY, answer="Behind the clock.", fingerprint="fp_7")
    answer = ask(client, user(unique("Where is the key?")), **LOGPROBS)
    assert endpoint.requests(KEY)[-1]["top_logprobs"] == 2
    assert answer.choices[0].logprobs.model_dump()["content"] == expected_logprobs(["Behind", " the", " clock."])
    assert answer.system_fingerprint == "fp_7"
    assert ask(client, user(unique("Where is the key?"))).choices[0].logprobs is None, "not requested"


def test_streamed_logprobs_arrive_with_their_text(client, endpoint):
    words = ["One", " word", " after", " the", " other."]
    endpoint.script(KEY, answer="".join(words), token_delay=0.1, fingerprint="fp_7")
    chunks = [c for c in ask(client, user(unique("Slowly")), stream=True, **LOGPROBS) if c.choices]
    with_text = [chunk for chunk in chunks if chunk.choices[0].delta.content]

    entries = [[entry.model_dump() for entry in chunk.choices[0].logprobs.content] for chunk in with_text]
    assert len(with_text) > 2
    assert [entry for part in entries for entry in part] == expected_logprobs(words)
    texts = ["".join(entry["token"] for entry in part) for part in entries]
    assert texts == [chunk.choices[0].delta.content for chunk in with_text]
    assert {chunk.system_fingerprint for chunk in chunks[1:]} == {"fp_7"}


def test_a_repeated_request_returns_the_logprobs_again_until_the_answer_is_forgotten(client, cato, alice):
    question, key = user(unique("Where is the key?")), {"Idempotency-Key": uuid.uuid4().hex}

    def repeat():
        return ask(client, question, **LOGPROBS, extra_headers=key)

    first = repeat()
    assert repeat().choices[0].logprobs == first.choices[0].logprobs
    query = "SELECT exchange_id FROM chat_turn WHERE id = ?"
    exchange = uuid.UUID(cato.sql(query, uuid.UUID(first.cato["turn"]).hex)[0][0])
    assert alice.post(f"/m/{exchange}/forget-everywhere").status_code in (200, 302)
    assert repeat().choices[0].logprobs is None


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refusal_is_one_for_the_client_and_a_text_on_the_page(client, alice, endpoint, is_streamed):
    endpoint.script(KEY, answer="I cannot help with that.", refuses=True, token_delay=0.1)
    question = user(unique("How do I pick this lock?"))
    if is_streamed:
        chunks = [chunk for chunk in ask(client, question, stream=True, **LOGPROBS)]
        deltas = [chunk.choices[0].delta for chunk in chunks]
        refusal, content = ("".join(getattr(delta, name) or "" for delta in deltas) for name in ("refusal", "content"))
        tokens = [
            entry.token for chunk in chunks if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.refusal
        ]
        thread = thread_of(chunks[-1])
    else:
        answer = ask(client, question, **LOGPROBS)
        refusal, content = answer.choices[0].message.refusal, answer.choices[0].message.content
        tokens, thread = [entry.token for entry in answer.choices[0].logprobs.refusal], thread_of(answer)

    assert (refusal, content or "") == ("I cannot help with that.", "")
    assert "".join(tokens) == refusal
    assert "I cannot help with that." in alice.thread_page(thread)

    endpoint.script(KEY, answer="All right.")
    refused = {"role": "assistant", "content": None, "refusal": refusal}
    following = ask(client, question, refused, user("And a window?"))
    assert thread_of(following) == thread
    assert following.choices[0].message.refusal is None
    assert assistant(refusal) in prompt_of(endpoint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 9),
        ("top_logprobs", 21),
        ("max_tokens", 0),
        ("stop", list("abcde")),
        ("seed", 2**70),
        ("response_format", {"type": "json_schema", "json_schema": {"description": "x" * 100_000}}),
    ],
)
def test_an_impossible_option_is_refused_by_name(client, name, value):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, user("Hi"), **{name: value})
    assert refused.value.param.startswith(name)


TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


def post_json(cato, people, path: str, body: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {people['token']}", "Content-Type": "application/json"}
    return httpx.post(f"{cato.url}/v1/{path}", content=body, headers=headers)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("response_format", {"type": "json_schema", "json_schema": {"schema": {"maximum": "NUMBER"}}}),
        ("tools", [{"type": "function", "function": {"name": "look", "parameters": {"maximum": "NUMBER"}}}]),
        ("tool_choice", {"type": "function", "function": {"name": "look", "weight": "NUMBER"}}),
    ],
)
def test_a_number_that_json_does_not_have_is_refused(cato, people, name, value, number):
    body = {"model": "cato", "messages": [user("Hi")], "tools": [TOOL]} | {name: value}
    answer = post_json(cato, people, "chat/completions", json.dumps(body).replace('"NUMBER"', number))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_the_metadata_of_a_response_which_is_sent_back_has_no_such_number_either(cato, people, number):
    body = f'{{"model": "cato", "input": "Hi", "metadata": {{"share": {number}}}}}'
    answer = post_json(cato, people, "responses", body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "metadata")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool_choice", {"x": 1}),
        ("tool_choice", {"type": "function", "function": {"name": None}}),
        ("response_format", {"schema": {}}),
        ("response_format", {"type": "json_schema", "json_schema": "place"}),
    ],
)
def test_a_choice_or_format_without_its_fields_is_refused(client, name, value):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, user("Hi"), **({"tools": [TOOL]} | {name: value}))
    assert refused.value.param == name


def test_texts_of_options_and_tool_messages_contain_no_nul(client, cato, endpoint):
    question = user(unique("What is this?"))
    calls = [{"id": "a\x00b", "type": "function", "function": {"name": "look\x00", "arguments": "{}"}}]
    messages = [
        user(unique("First\x00")),
        assistant("Yes."),
        question,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a\x00b", "content": "It is there."},
    ]
    options = {
        "stop": ["EN\x00D"],
        "reasoning_effort": "lo\x00w",
        "response_format": {"type": "json_schema", "json_schema": {"na\x00me": "pla\x00ce"}},
        "tools": [{"type": "function", "function": {"name": "look", "description": "Lo\x00oks."}}],
    }
    answer = ask(client, *messages, **options)

    sent = endpoint.requests(KEY)[-1]
    assert (sent["stop"], sent["reasoning_effort"]) == (["END"], "low")
    assert sent["response_format"]["json_schema"] == {"name": "place"}
    assert sent["tools"][0]["function"]["description"] == "Looks."
    assert sent["messages"][-2]["tool_calls"][0]["function"]["name"] == "look"
    assert (sent["messages"][-2]["tool_calls"][0]["id"], sent["messages"][-1]["tool_call_id"]) == ("ab", "ab")
    titles = cato.sql("SELECT title FROM chat_thread WHERE id = ?", uuid.UUID(thread_of(answer)).hex)
    assert "\x00" not in titles[0][0]


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_base64_of_other_letters_is_refused(cato, people, path):
    address = "data:image/png;base64,é"
    parts = {
        "chat/completions": {"messages": [user([{"type": "image_url", "image_url": address}])]},
        "responses": {"input": [user([{"type": "input_image", "image_url": address}])]},
    }
    answer = post_json(cato, people, path, json.dumps({"model": "cato"} | parts[path]))
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.django_db(transaction=True)
def test_an_unexpected_exception_is_logged_and_has_openais_format(monkeypatch, caplog):
    def fail() -> None:
        raise ZeroDivisionError("of the secret")

    monkeypatch.setattr("chat.llm.endpoint.list_endpoints", fail)
    answer = api_client(PersonFactory()).get("/v1/models")

    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
    assert "secret" not in answer.content.decode()
    assert "ZeroDivisionError" in caplog.text


def test_a_client_that_closes_its_stream_stops_the_answer(client, cato, endpoint):
    endpoint.script(KEY, answer="word " * 400, token_delay=0.1)
    first = unique("Tell me everything")
    with ask(client, user(first), stream=True) as stream:
        chunks = iter(stream)
        thread = next(chunks).cato["thread"]
        received = "".join(next(chunks).choices[0].delta.content for _ in range(3))
    _wait_until_stopped(cato, thread)

    endpoint.script(KEY, answer="All right.")
    following = ask(client, user(first), assistant(received), user("Enough, thanks"))
    assert thread_of(following) == thread, "although the client has not received its last words"
    assert [message for message, _ in active_turns(cato, thread)] == [first, "Enough, thanks"]


def test_a_client_that_leaves_before_the_first_word_stops_the_answer(people, cato, endpoint):
    endpoint.script(KEY, answer="word " * 400, first_delay=4)
    first = unique("Tell me everything, soon")
    with pytest.raises(openai.APITimeoutError):
        ask(client_of(cato, people["token"]).with_options(timeout=1), user(first), stream=True)
    query = "SELECT count(*) FROM chat_turn WHERE message = ? AND state = 'stopped'"
    wait_for(lambda: cato.sql(query, first)[0][0], "the answer to be stopped", seconds=3)


def test_a_stream_of_a_slow_model_begins_before_its_answer(client, cato, endpoint):
    endpoint.script(KEY, answer="At last.", first_delay=8)
    with ask(client, user(unique("Think")), stream=True) as stream:
        chunks = iter(stream)
        thread = next(chunks).cato["thread"]
        assert active_turns(cato, thread)[-1][1] == ""
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "At last."


def _wait_until_stopped(cato, thread: str) -> None:
    query = "SELECT count(*) FROM chat_turn WHERE thread_id = ? AND state = 'stopped'"
    wait_for(lambda: cato.sql(query, uuid.UUID(thread).hex)[0][0], "the answer to be stopped", seconds=10)


TASK = "### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: Where is the %s?\n</chat_history>"


@pytest.mark.parametrize(
    "options",
    [
        {"messages": [user(TASK % "key")]},
        {"messages": [user("A title for: key")], "metadata": {"task": "title_generation"}},
        {"messages": [user("A title for: key")], "extra_headers": {"X-Cato-Background": "yes"}},
    ],
    ids=["form", "metadata", "header"],
)
def test_background_requests_of_front_ends_leave_no_trace(client, cato, endpoint, options):
    endpoint.script(KEY, answer="The missing key")
    before = cato.sql("SELECT count(*) FROM chat_turn")
    messages = options.pop("messages")
    answer = client.chat.completions.create(model="fake-large", messages=messages, max_tokens=20, **options)
    with_usage = {"include_usage": True}
    streamed = client.chat.completions.create(
        model="cato", messages=messages, stream=True, stream_options=with_usage, **options
    )
    *chunks, last = streamed

    assert answer.choices[0].message.content == "The missing key"
    assert answer.model == "fake-large"
    assert answer.usage.total_tokens
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "The missing key"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage) == ([], answer.usage)
    request = endpoint.requests(KEY)[-2]
    assert (request["messages"], request["max_tokens"]) == (messages, 20), "without recall and Cato's prompt"
    assert cato.sql("SELECT count(*) FROM chat_turn") == before


def test_a_background_request_has_refusal_logprobs_and_fingerprint(client, endpoint):
    endpoint.script(KEY, answer="I cannot.", refuses=True, fingerprint="fp_7")
    answer = ask(client, user(TASK % "key"), **LOGPROBS)
    chunks = list(ask(client, user(TASK % "key"), **LOGPROBS, stream=True))

    message, logprobs = answer.choices[0].message, answer.choices[0].logprobs
    assert (message.refusal, message.content, answer.system_fingerprint) == ("I cannot.", None, "fp_7")
    assert logprobs.model_dump()["refusal"] == expected_logprobs(["I", " cannot."], "refusal")
    assert "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks) == "I cannot."
    parts = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [entry for part in parts for entry in part.refusal] == logprobs.refusal
    assert chunks[-1].system_fingerprint == "fp_7"


def test_other_metadata_does_not_keep_a_message_out_of_memory(client):
    assert thread_of(ask(client, user(unique("What do we research?")), metadata={"task": "research"}))


def test_a_failed_background_request_says_why(client, endpoint):
    endpoint.script(KEY, mode="error-401")
    with pytest.raises(openai.APIStatusError):
        ask(client, user(TASK % "key"))
    with pytest.raises(openai.APIStatusError):
        list(ask(client, user(TASK % "key"), stream=True))
    endpoint.script(KEY, mode="cut")
    with pytest.raises(openai.APIError, match="cut off"):
        list(ask(client, user(TASK % "key"), stream=True))


def test_an_image_needs_no_text(client, cato, endpoint):
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}}]
    thread = thread_of(ask(client, {"role": "user", "content": content}))
    assert [message for message, _ in active_turns(cato, thread)] == ["Image"]
    assert prompt_of(endpoint)[-1]["content"][-1]["type"] == "image_url"


def test_events_match_openais_format_exactly_and_name_the_thread(cato, people):
    body = {"model": "cato", "messages": [user(unique("Hello"))], "stream": True}
    headers = {"Authorization": f"Bearer {people['token']}", "Accept-Encoding": "gzip"}
    answer = httpx.post(f"{cato.url}/v1/chat/completions", json=body, headers=headers, timeout=30)

    assert answer.headers["content-type"] == "text/event-stream"
    assert "content-encoding" not in answer.headers
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert answer.headers["x-cato-thread"] in lines[0]


def test_several_turns_form_one_thread(client, cato):
    first = unique("My boat is called Petrel")
    one = ask(client, user(first))
    two = ask(client, user(first), assistant("All right."), user("What is it called?"))
    three = ask(
        client,
        user(first),
        assistant("All right."),
        user("What is it called?"),
        assistant("All right."),
        user("Thanks"),
    )

    assert thread_of(one) == thread_of(two) == thread_of(three)
    assert [message for message, _ in active_turns(cato, thread_of(one))] == [first, "What is it called?", "Thanks"]


def test_pages_and_api_share_one_memory(client, alice, endpoint):
    thread = alice.send_message("The ferry to Sandoe leaves from the north pier at seven.")
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the exchange to be remembered")
    answer = ask(client, user("Where does the ferry to Sandoe leave from?"))

    assert "north pier" in prompt_of(endpoint)[-1]["content"]
    (recalled, *_) = answer.cato["recalled"]
    assert "north pier" in recalled["excerpt"]
    assert recalled["who"] == "Alice Owner"
    assert recalled["similarity"] > 0.3
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread_of(answer)), "it to be remembered too")


def test_system_messages_become_the_client_system_prompt(client, alice, endpoint):
    first = unique("Ahoy")
    answer = ask(client, {"role": "system", "content": "Speak like a harbour pilot."}, user(first))
    (system, *_) = prompt_of(endpoint)
    assert system["role"] == "system"
    assert system["content"].endswith("\n\nSpeak like a harbour pilot.")
    assert len(system["content"]) > 200

    alice.send_message("And in the browser?", thread=thread_of(answer))
    wait_for(lambda: prompt_of(endpoint)[-1]["content"].endswith("in the browser?"), "the browser's question")
    assert prompt_of(endpoint)[0]["content"].endswith("Speak like a harbour pilot.")


def test_conversations_with_the_same_first_message_stay_separate(client, cato, endpoint):
    """Two clients send the same first message and get the same answer; then they diverge."""
    first = unique("Hi there, twin")
    one, second = ask(client, user(first)), ask(client, user(first))
    assert thread_of(one) != thread_of(second)

    of_a = ask(client, user(first), assistant("All right."), user("Project A: the vault code is 1122"))
    of_b = ask(client, user(first), assistant("All right."), user("Project B: the vault code is 3344"))
    further = ask(
        client,
        user(first),
        assistant("All right."),
        user("Project A: the vault code is 1122"),
        assistant("All right."),
        user("Which project is this?"),
    )

    assert thread_of(of_a) != thread_of(of_b)
    assert thread_of(further) == thread_of(of_a)
    assert findable_texts(cato, thread_of(of_a)) == sorted(
        [f"{first} All right.", "Project A: the vault code is 1122 All right.", "Which project is this? All right."]
    )
    assert findable_texts(cato, thread_of(of_b)) == sorted(
        [f"{first} All right.", "Project B: the vault code is 3344 All right."]
    )


def test_a_conversation_whose_thread_has_changed_gets_a_new_thread_and_hides_nothing(client, cato):
    first = unique("Let us talk of boats")
    thread = thread_of(ask(client, user(first)))
    ask(client, user(first), assistant("All right."), user("Of rowing boats"))
    second = ask(client, user(first), assistant("All right."), user("Of sailing boats"))

    assert thread_of(second) != thread
    assert [message for message, _ in active_turns(cato, thread)] == [first, "Of rowing boats"]
    assert findable_texts(cato, thread) == sorted([f"{first} All right.", "Of rowing boats All right."])
    assert [message for message, _ in active_turns(cato, thread_of(second))] == [first, "Of sailing boats"]
    assert findable_texts(cato, thread_of(second)) == ["Of sailing boats All right."]


def test_a_conversation_of_another_token_gets_a_new_thread(client, cato, people):
    first = unique("My boat is called Petrel")
    one = ask(client, user(first))
    (another,) = create_tokens(cato, people["alice"], "read write ask")
    second = ask(client_of(cato, another), user(first), assistant("All right."), user("What is it called?"))
    assert thread_of(second) != thread_of(one)


def test_the_same_message_to_two_models_at_once_gets_two_answers(client, cato, endpoint):
    endpoint.script(KEY, answer="It is red, I think.", token_delay=0.1)
    question = unique("Which colour has the buoy?")
    with ThreadPoolExecutor(4) as pool:
        wanted = ["fake", "fake-large", "fake", "fake"]
        answers_ = list(pool.map(lambda model: ask(client, user(question), model=model), wanted))

    assert [answer.model for answer in answers_] == wanted
    assert len({answer.cato["turn"] for answer in answers_}) == 4
    assert len({thread_of(answer) for answer in answers_}) == 4


def test_two_models_asked_at_once_in_a_named_thread_both_answer(client, cato, alice, endpoint):
    thread = alice.send_message(unique("The sail is torn"))
    wait_for(lambda: active_turns(cato, thread)[0][1], "the answer")
    endpoint.script(KEY, answer="It is torn.", token_delay=0.1)
    with ThreadPoolExecutor(2) as pool:
        thread_header = {"extra_headers": {"X-Cato-Thread": thread}}
        wanted = ["fake", "fake-large"]
        answers_ = list(
            pool.map(lambda model: ask(client, user("What is torn?"), model=model, **thread_header), wanted)
        )

    assert [answer.model for answer in answers_] == wanted
    assert len({answer.cato["turn"] for answer in answers_}) == 2
    assert cato.sql("SELECT model FROM chat_thread WHERE id = ?", uuid.UUID(thread).hex) == [("",)]


def test_in_a_named_thread_a_repeated_message_regenerates_the_answer(client, cato, endpoint):
    endpoint.script(KEY, answer=["Noted.", "It is red.", "It is blue."])
    first, second = unique("There is a buoy"), "Which colour has it?"
    thread = thread_of(ask(client, user(first)))
    thread_header = {"extra_headers": {"X-Cato-Thread": thread}}
    conversation = user(first), assistant("Noted."), user(second)
    ask(client, *conversation, **thread_header)
    ask(client, *conversation, **thread_header)

    assert active_turns(cato, thread) == [(first, "Noted."), (second, "It is blue.")]
    assert findable_texts(cato, thread) == sorted([f"{first} Noted.", f"{second} It is blue."])


def test_in_a_named_thread_a_changed_message_is_an_edit(client, cato):
    first = unique("Let us talk of boats")
    thread = thread_of(ask(client, user(first)))
    thread_header = {"extra_headers": {"X-Cato-Thread": thread}}
    ask(client, user(first), assistant("All right."), user("Of rowing boats"), **thread_header)
    ask(client, user(first), assistant("All right."), user("Of sailing boats"), **thread_header)

    assert [message for message, _ in active_turns(cato, thread)] == [first, "Of sailing boats"]
    assert [text for text in findable_texts(cato, thread) if "rowing" in text] == []


def test_an_unknown_history_is_imported_into_a_thread_and_remembered_once(client, cato, endpoint):
    first = unique("I moor at berth nine")
    one = ask(client, user(first))
    second = ask(client, user(first), assistant("Berth nine, noted, and berth ten is free."), user("Which is free?"))

    assert thread_of(second) != thread_of(one)
    texts = [message["content"] for message in prompt_of(endpoint)]
    assert "Berth nine, noted, and berth ten is free." in texts
    assert first in texts
    assert findable_texts(cato, thread_of(second)) == ["Which is free? All right."]
    assert len(active_turns(cato, thread_of(one))) == 1


def test_messages_sent_in_the_browser_meanwhile_stay_on_the_active_branch(client, cato, alice):
    first = unique("Plan the trip")
    thread = thread_of(ask(client, user(first)))
    alice.send_message("Take the charts along", thread=thread)
    wait_for(lambda: len(active_turns(cato, thread)) == 2 and active_turns(cato, thread)[1][1], "the browser's answer")
    thread_header = {"extra_headers": {"X-Cato-Thread": thread}}
    ask(client, user(first), assistant("All right."), user("What else?"), **thread_header)

    assert [message for message, _ in active_turns(cato, thread)] == [first, "Take the charts along", "What else?"]


def test_in_a_named_thread_the_new_message_is_enough(client, cato, alice, endpoint):
    thread = alice.send_message(unique("The sail is torn"))
    wait_for(lambda: active_turns(cato, thread)[0][1], "the answer")
    answer = ask(client, user("What is torn?"), extra_headers={"X-Cato-Thread": thread})

    assert thread_of(answer) == thread
    assert any("The sail is torn" in str(message["content"]) for message in prompt_of(endpoint)[1:-1])


def test_a_thread_of_another_person_looks_like_a_missing_one(cato, people, client):
    thread = thread_of(ask(client, user(unique("Mine alone"))))
    refusals = []
    for name in (thread, str(uuid.uuid4())):
        with pytest.raises(openai.NotFoundError) as refused:
            ask(client_of(cato, people["bob"]), user("Let me in"), extra_headers={"X-Cato-Thread": name})
        refusals.append(refused.value.body)
    assert refusals[0] == refusals[1]
    assert "Let me in" not in str(active_turns(cato, thread))


def test_the_same_message_of_another_person_is_another_thread(cato, people, client):
    first = unique("Where is the anchor?")
    alices, bobs = ask(client, user(first)), ask(client_of(cato, people["bob"]), user(first))
    assert thread_of(alices) != thread_of(bobs)


def test_a_repeated_idempotency_key_creates_one_turn(client, cato):
    first, key = unique("Once only"), {"Idempotency-Key": uuid.uuid4().hex}
    one, two = ask(client, user(first), extra_headers=key), ask(client, user(first), extra_headers=key)

    assert one.id == two.id
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_a_key_that_was_sent_with_another_request_is_refused(client, cato):
    key, other = {"Idempotency-Key": uuid.uuid4().hex}, unique("What is the date?")
    ask(client, user(unique("What is the time?")), extra_headers=key)

    with pytest.raises(openai.ConflictError, match="Use a new key"):
        ask(client, user(other), extra_headers=key)
    assert not cato.sql("SELECT id FROM chat_turn WHERE message = ?", other)


def test_a_refused_request_leaves_its_key_free(client):
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    with pytest.raises(openai.BadRequestError):
        ask(client, user("a" * 400_000), extra_headers=headers)
    assert ask(client, user(unique("Shorter")), extra_headers=headers).choices[0].message.content == "All right."


def test_another_token_of_the_same_person_gets_no_answer_by_a_key(client, cato, people):
    question, key = user(unique("What is the code?")), {"Idempotency-Key": uuid.uuid4().hex}
    asking = client_of(cato, people["asking"])

    assert ask(client, question, extra_headers=key).id != ask(asking, question, extra_headers=key).id


def test_a_key_that_is_too_long_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="at most 200 characters"):
        ask(client, user("Hello"), extra_headers={"Idempotency-Key": "k" * 201})


def test_a_client_with_an_idempotency_key_stops_nothing_and_can_fetch_the_answer(cato, people, endpoint):
    endpoint.script(KEY, answer="It is worth waiting for this.", token_delay=0.15)
    first = unique("Is it worth waiting?")
    impatient, key = client_of(cato, people["token"]), {"Idempotency-Key": uuid.uuid4().hex}
    for _chunk in (stream := ask(impatient, user(first), stream=True, extra_headers=key)):
        break
    stream.close()
    answer = ask(impatient, user(first), extra_headers=key)

    assert answer.choices[0].message.content == "It is worth waiting for this."
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_a_client_may_disable_memory(client, cato):
    answer = ask(client, user(unique("Off the record")), extra_headers={"X-Cato-Remember": "no"})

    assert active_turns(cato, thread_of(answer))
    assert findable_texts(cato, thread_of(answer)) == []


def test_a_model_error_is_reported_and_a_retry_uses_the_same_turn(client, cato, endpoint):
    endpoint.script(KEY, mode="error-500", fail_times=2)
    first = unique("Are you there?")
    with pytest.raises(openai.InternalServerError) as failed:
        ask(client, user(first))
    assert failed.value.status_code == 502
    assert "Try again" in str(failed.value)
    with pytest.raises(openai.InternalServerError, match="Try again"):
        list(ask(client, user(first), stream=True))

    assert ask(client, user(first)).choices[0].message.content
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_images_are_accepted_only_as_data_urls(client, endpoint):
    def ask_about_image(address: str):
        parts = [
            {"type": "text", "text": unique("What is this?")},
            {"type": "image_url", "image_url": {"url": address}},
        ]
        return ask(client, {"role": "user", "content": parts})

    ask_about_image(f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    assert [part["type"] for part in prompt_of(endpoint)[-1]["content"]] == ["text", "image_url"]
    with pytest.raises(openai.BadRequestError, match="data: addresses"):
        ask_about_image("https://example.org/key.png")


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"functions": [{"name": "look", "parameters": {}}]}, "functions"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"n": 2}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [user("Hi"), assistant("Hello, I")]}, "messages"),
        ({"messages": [user("   ")]}, None),
    ],
)
def test_unsupported_parameters_are_refused_by_name(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**({"model": "cato", "messages": [user("Hi")]} | options))
    assert refused.value.param == param
    assert refused.value.body["type"] == "invalid_request_error"
    assert refused.value.body["message"]


@pytest.mark.parametrize(("path", "allowed"), [("chat/completions", "POST"), ("models", "GET")])
def test_another_method_is_refused_with_the_one_that_is_allowed(path, allowed):
    refused = Client().delete(f"/v1/{path}")
    assert (refused.status_code, refused["Allow"]) == (405, allowed)


def test_paths_may_end_in_a_slash(cato, people):
    http = httpx.Client(base_url=f"{cato.url}/v1", headers={"Authorization": f"Bearer {people['token']}"}, timeout=30)
    assert http.get("/models/").json()["data"]
    assert http.get("/models/cato/").json()["id"] == "cato"
    body = {"model": "cato", "messages": [user(unique("With a slash"))]}
    assert http.post("/chat/completions/", json=body).json()["choices"][0]["message"]["content"] == "All right."
    assert http.post("/embeddings/", json={"input": "key"}).json()["data"]
    response = http.post("/responses/", json={"model": "cato", "input": unique("Another slash")}).json()
    assert http.get(f"/responses/{response['id']}/").json()["id"] == response["id"]
    assert http.get("/assistants/").json()["error"]["code"] == "unknown_url"


def test_the_api_requires_a_token_with_the_scope(cato, people, alice):
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(client_of(cato, "cato_wrong"), user("Hi"))
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.PermissionDeniedError):
        ask(client_of(cato, people["reading"]), user("Hi"))
    assert client_of(cato, people["reading"]).models.list().data
    assert client_of(cato, people["asking"]).models.list().data, "clients list the models before they ask"
    for header in ("X-API-Key", "api-key"):
        assert httpx.get(f"{cato.url}/v1/models", headers={header: people["token"]}).status_code == 200
    # A browser's cookie does not authenticate.
    assert alice.get("/v1/models").status_code == 401


def test_models_are_listed_and_unknown_models_refused(client, endpoint):
    names = [model.id for model in client.models.list()]
    assert {"cato", "fake", "fake-large", "multilingual-e5-small"} <= set(names)
    assert client.models.retrieve("fake-large").object == "model"
    assert {name: client.models.retrieve(name).type for name in ("cato", "multilingual-e5-small")} == {
        "cato": "chat",
        "multilingual-e5-small": "embedding",
    }
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-none")
    with pytest.raises(openai.NotFoundError) as refused:
        ask(client, user("Hi"), model="gpt-none")
    assert refused.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="does not chat"):
        ask(client, user("Hi"), model="multilingual-e5-small")

    answer = ask(client, user(unique("Who answers?")), model="fake-large")
    assert answer.model == "fake-large"
    assert endpoint.requests(KEY)[-1]["model"] == "fake-large"


def test_embeddings_are_memorys_own_in_both_encodings(client):

    from memory import embeddings

    texts = ["the harbour master's office", "ein Boot", "the harbour master's office"]
    floats = client.embeddings.create(model="multilingual-e5-small", input=texts, encoding_format="float")
    packed = client.embeddings.create(model="cato", input=texts)  # the client requests base64 on its own

    expected = embeddings.get_embedder().embed_documents(texts)
    assert np.allclose([row.embedding for row in floats.data], expected, atol=1e-5)
    assert np.allclose([row.embedding for row in packed.data], expected, atol=1e-5)
    assert [row.index for row in floats.data] == [0, 1, 2]
    one = client.embeddings.create(model="cato", input="ein Boot", dimensions=384)
    assert np.allclose(one.data[0].embedding, expected[1], atol=1e-5)


@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        ([9906, 1917], ["Hello world"]),
        ([[9906, 1917], [6600, 2448, 24352]], ["Hello world", "Grüße"]),
    ],
)
def test_an_array_of_openais_tokens_is_embedded_like_its_text(client, tokens, texts):
    of_tokens = client.embeddings.create(model="cato", input=tokens)
    of_texts = client.embeddings.create(model="cato", input=texts)

    assert [row.embedding for row in of_tokens.data] == [row.embedding for row in of_texts.data]


@pytest.mark.parametrize(
    ("options", "explanation"),
    [
        ({"input": [1, 200_000]}, "There is no token 200000 in OpenAI's encoding cl100k_base"),
        ({"input": [[1], ["a"]]}, "input"),
        ({"input": [220] * 100_001}, "At most"),
        ({"input": [100_257] * 20_000}, "At most"),
        ({"input": [220]}, "nothing to embed"),
        ({"input": ""}, "nothing to embed"),
        ({"input": []}, "nothing to embed"),
        ({"dimensions": 3}, "384 dimensions"),
    ],
)
def test_an_invalid_embedding_request_is_explained(client, options, explanation):
    with pytest.raises(openai.BadRequestError, match=explanation):
        client.embeddings.create(**({"model": "cato", "input": "a text"} | options))


def test_unknown_paths_answer_404_in_openais_format(client):
    with pytest.raises(openai.NotFoundError) as refused:
        client.completions.create(model="cato", prompt="Hi")
    assert refused.value.code == "unknown_url"


@pytest.mark.django_db(transaction=True)
def test_without_a_configured_model_every_model_answers_with_the_placeholder(settings):
    settings.CATO = settings.CATO.model_copy(update={"dummy_mode": True})
    person = PersonFactory()
    api_client(person)
    token = person.api_tokens.get()

    async def ask_placeholder() -> dict:
        assert await models.resolve_model("gpt-anything", None) is None
        switched = await run_in_db_thread(
            submit_conversation,
            person.pk,
            ClientConversation("Hello"),
            client_key=uuid.uuid4(),
            api_token_id=token.pk,
        )
        await runner.run_answer(switched.posted.turn.id)
        return await responses.completion(switched.posted.turn, token.pk)

    answer = asyncio.run(ask_placeholder())
    assert "Placeholder: no model is connected." in answer["choices"][0]["message"]["content"]
    assert answer["cato"]["is_dummy"]
    assert answer["usage"] is None
    assert not Exchange.objects.exists()


def test_running_answers_hold_no_database_connection(client, cato, endpoint):
    """Twenty answers run longer than the pool's timeout while pages are served."""
    import threading

    endpoint.script(KEY, answer="one two three four five six", token_delay=0.2)
    answers: list[str] = []

    def listen() -> None:
        answers.append("".join(c.choices[0].delta.content or "" for c in ask(client, user(unique("Go")), stream=True)))

    listeners = [threading.Thread(target=listen) for _ in range(20)]
    for listener in listeners:
        listener.start()
    time.sleep(0.4)
    assert httpx.get(f"{cato.url}/healthz").status_code == 200
    for listener in listeners:
        listener.join()
    assert answers == ["one two three four five six"] * 20


def test_a_disabled_api_answers_404(settings):
    from django.test import Client

    closed = settings.CATO.api.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"api": closed})
    answer = Client().get("/v1/models", headers={"Authorization": "Bearer cato_any"})

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"

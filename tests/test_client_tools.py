"""Tools of API clients: the model calls them, the client runs them, and the same turn is answered with their results."""

from __future__ import annotations

import json
import uuid

import openai
import pytest
from openai import OpenAI

from tests.server import wait_for
from tests.tokens import create_tokens

KEY = "cato"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("weather", "clock")
]
WEATHER = ("weather", '{"city": "Ålesund"}')
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CLOCK = ("clock", '{"zone": "CET"}')


@pytest.fixture(scope="module")
def alice(cato, administrator):
    return cato.join(administrator, "Alice Tools")


@pytest.fixture(scope="module")
def client(cato, alice) -> OpenAI:
    (token,) = create_tokens(cato, alice, "read write ask")
    return OpenAI(base_url=f"{cato.url}/v1", api_key=token, max_retries=0, timeout=30)


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def unique(text: str) -> str:
    """Return a unique text: an equal conversation would be recognised as the same thread."""
    return f"{text} ({uuid.uuid4().hex[:6]})"


def ask(client: OpenAI, messages: list, **options):
    return client.chat.completions.create(model="cato", messages=messages, tools=TOOLS, **options)


def ask_streamed(client: OpenAI, messages: list):
    """Return the completion that the client of OpenAI makes of the events."""
    with client.chat.completions.stream(model="cato", messages=messages, tools=TOOLS) as stream:
        return stream.get_final_completion()


def run_agent(client: OpenAI, messages: list, ask=ask) -> list:
    """Answer calls until the model calls nothing more, as agents do; return the completions."""
    completions = []
    while not completions or completions[-1].choices[0].message.tool_calls:
        completions.append(ask(client, messages))
        message = completions[-1].choices[0].message
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        messages += [result(call.id, f"result of {call.function.name}") for call in message.tool_calls or ()]
    return completions


def result(call_id: str, text: str | list) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def call(call_id: str, name: str = "weather") -> dict:
    calls = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def turns_of(cato, thread: str) -> list[tuple]:
    query = (
        "SELECT message, answer, state, finish_reason, exchange_id FROM chat_turn WHERE thread_id = ? ORDER BY position"
    )
    return cato.sql(query, uuid.UUID(thread).hex)


def prompt_of(endpoint) -> list[dict]:
    return endpoint.requests(KEY)[-1]["messages"]


@pytest.mark.parametrize("ask", [ask, ask_streamed])
def test_an_agent_runs_tools_for_several_rounds_in_one_turn(client, cato, endpoint, ask):
    endpoint.script(KEY, answer=["Let me see.", "", "Sunny at noon."], calls=[[WEATHER, CLOCK], [WEATHER]])
    question = unique("How is the weather?")
    messages = [user(question)]
    first, second, last = run_agent(client, messages, ask)

    calls = first.choices[0].message.tool_calls
    assert [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls] == [
        ("call-1-1", "weather", {"city": "Ålesund"}),
        ("call-1-2", "clock", {"zone": "CET"}),
    ]
    assert [a.choices[0].finish_reason for a in (first, second, last)] == ["tool_calls", "tool_calls", "stop"]
    assert [a.choices[0].message.content or None for a in (first, second, last)] == [
        "Let me see.",
        None,
        "Sunny at noon.",
    ]
    assert len({a.id for a in (first, second, last)}) == 1, "one turn"
    prompt = prompt_of(endpoint)
    assert [m["role"] for m in prompt] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert prompt[2]["content"] == "Let me see."
    assert prompt[5]["content"] == "", "some servers refuse null"
    assert prompt[4] == result("call-1-2", "result of clock")
    thread = first.cato["thread"]
    ((message, answer, *_state, exchange_id),) = turns_of(cato, thread)
    assert (message, answer, exchange_id is not None) == (question, "Sunny at noon.", True)

    endpoint.script(KEY, answer="You are welcome.")
    thanks = ask(client, [*messages, user("Thanks")])
    assert thanks.cato["thread"] == thread, "the conversation with its tool messages continues the thread"
    assert [m["content"] for m in prompt_of(endpoint)][2] == "Sunny at noon.", (
        "without the tool messages of earlier turns"
    )


def test_each_round_of_an_agent_has_its_own_usage(client, endpoint):
    endpoint.script(KEY, answer=["Let me see.", "Sunny."], calls=[[WEATHER]])
    rounds = run_agent(client, [user(unique("How is the weather?"))])
    assert [one.usage.completion_tokens for one in rounds] == [3, 1]


def test_nothing_is_remembered_before_the_final_answer_and_the_page_says_what_is_called(client, cato, alice, endpoint):
    endpoint.script(KEY, answer="Let me see.", calls=[[WEATHER]])
    waiting = ask(client, [user(unique("And now?"))])
    thread = waiting.cato["thread"]

    ((_message, _answer, state, reason, exchange_id),) = turns_of(cato, thread)
    assert (state, reason, exchange_id) == ("complete", "tool_calls", None)
    page = alice.thread_page(thread)
    assert "Called weather" in page
    assert "returned an empty answer" not in page
    endpoint.script(KEY, answer="All right.")
    alice.send_message("Never mind", thread)
    wait_for(lambda: turns_of(cato, thread)[-1][1] == "All right.", "an answer to the next message")


def test_options_of_tools_are_passed_on_only_with_tools(client, endpoint):
    endpoint.script(KEY, answer="No need.")
    choice = {"type": "function", "function": {"name": "clock"}}
    ask(client, [user(unique("What time is it?"))], tool_choice=choice, parallel_tool_calls=False)
    request = endpoint.requests(KEY)[-1]
    assert (request["tools"], request["tool_choice"], request["parallel_tool_calls"]) == (TOOLS, choice, False)
    client.chat.completions.create(model="cato", messages=[user(unique("Hi"))], tools=[], tool_choice="none")
    request = endpoint.requests(KEY)[-1]
    assert request["tools"][0]["function"]["name"] == "search_memory", "the tools of Cato, as for any message"
    assert "tool_choice" not in request


def test_a_forced_call_that_ends_with_stop_and_has_no_text_is_no_failure(client, cato, endpoint):
    endpoint.script(KEY, answer="", calls=[[WEATHER]])
    completion = ask(client, [user(unique("Only call"))])
    assert completion.choices[0].message.content is None
    assert completion.choices[0].message.tool_calls[0].function.name == "weather"


def test_results_without_a_waiting_turn_begin_a_thread_that_has_them(client, cato, endpoint):
    endpoint.script(KEY, answer="Rain.")
    earlier = [user(unique("Earlier")), call("a"), result("a", "old"), {"role": "assistant", "content": "Old answer."}]
    completion = ask(client, [*earlier, user("And now?"), call("b"), result("b", "new")])

    assert [(row[0], row[1]) for row in turns_of(cato, completion.cato["thread"])][1:] == [("And now?", "Rain.")]
    assert [m["content"] for m in prompt_of(endpoint)[2:]] == ["Old answer.", "And now?", "", "new"]


def test_in_a_named_thread_the_last_message_and_its_tools_are_enough(client, cato, endpoint):
    endpoint.script(KEY, answer=["First.", "", "Dry."], calls=[[], [WEATHER]])
    thread = ask(client, [user(unique("First"))]).cato["thread"]
    named = {"extra_headers": {"X-Cato-Thread": thread}}
    waiting = ask(client, [user("Second")], **named)
    message = waiting.choices[0].message.model_dump(include={"role", "content", "tool_calls"})
    final = ask(client, [user("Second"), message, result("call-2-1", "dry")], **named)

    assert final.id == waiting.id
    assert [row[1] for row in turns_of(cato, thread)] == ["First.", "Dry."]


def test_a_failed_round_is_retried_in_the_same_turn(client, cato, endpoint):
    endpoint.script(KEY, answer="", calls=[[WEATHER]])
    messages = [user(unique("Fail once"))]
    waiting = ask(client, messages)
    messages += [call("call-1-1"), result("call-1-1", "storm")]
    endpoint.script(KEY, mode="error-500", fail_times=1, answer="Storm.")
    with pytest.raises(openai.InternalServerError):
        ask(client, messages)
    final = ask(client, messages)
    assert (final.id, final.choices[0].message.content) == (waiting.id, "Storm.")
    assert prompt_of(endpoint)[-1] == result("call-1-1", "storm")


def test_a_repeated_round_with_a_key_returns_the_same_answer(client, endpoint):
    endpoint.script(KEY, answer=["", "Once.", "Twice."], calls=[[WEATHER]])
    messages = [user(unique("Repeat"))]
    waiting = ask(client, messages)
    messages += [call("call-1-1"), result("call-1-1", "sun")]
    key = {"extra_headers": {"Idempotency-Key": uuid.uuid4().hex}}
    answers = [ask(client, messages, **key) for _ in range(2)]
    assert {answer.id for answer in answers} == {waiting.id}
    assert [answer.choices[0].message.content for answer in answers] == ["Once.", "Once."]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([user("Hi"), result("a", "x")], "must answer a tool call"),
        ([user("Hi"), call("a"), result("b", "x")], "must answer a tool call"),
        ([user("Hi"), call("a"), result("a", "x"), result("a", "x")], "must answer a tool call"),
        ([user("Hi"), call("a")], "followed by a tool message"),
        ([user("Hi"), call("a"), user("Well?")], "followed by a tool message"),
        ([user("Hi"), {"role": "function", "name": "weather", "content": "x"}], "role is one of"),
        ([user("Hi"), call("a"), result("a", "x" * 1_000_001)], "at most 1,000,000 characters"),
        ([user("Hi"), call("a"), result("a", [PICTURE])], "output of a function is text"),
    ],
)
def test_malformed_sequences_are_explained(client, messages, sentence):
    with pytest.raises(openai.BadRequestError, match=sentence) as refused:
        ask(client, messages)
    assert refused.value.param == "messages"


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "custom", "custom": {"name": "grep"}}],
        [{"type": "function", "function": {"name": "two words"}}],
        TOOLS * 65,
        [{"type": "function", "function": {"name": "long", "description": "x" * 200_000}}],
    ],
)
def test_impossible_tools_are_refused(client, tools):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="cato", messages=[user("Hi")], tools=tools)
    assert refused.value.param == "tools"


def test_background_requests_have_no_tools(client):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, [user("A title for: key")], extra_headers={"X-Cato-Background": "yes"})
    assert refused.value.param == "tools"

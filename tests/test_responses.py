"""The Responses API at /v1/responses, tested with OpenAI's own client."""

from __future__ import annotations

import base64
import json
import uuid

import httpx
import openai
import pytest
from django.utils import timezone
from openai import OpenAI
from pydantic import BaseModel

from cato_web.openai_api.conversations import AnswerResult
from cato_web.openai_api.response_objects import completed_response
from cato_web.openai_api.response_threads import ResponseRound
from chat.models import Turn
from tests.factories import PNG
from tests.server import wait_for
from tests.tokens import create_tokens

KEY = "cato"
TOOL = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
WEATHER = ("weather", '{"city": "Ålesund"}')


@pytest.fixture(autouse=True)
def plain_answers(endpoint):
    endpoint.script(KEY, answer="All right.")


@pytest.fixture(scope="module")
def people(cato, administrator):
    """Return a person and clients of tokens by name."""
    alice, bob = cato.join(administrator, "Alice Responses"), cato.join(administrator, "Bob Responses")
    full, reading, asking = create_tokens(cato, alice, "read write ask", "read", "ask")
    (of_bob,) = create_tokens(cato, bob, "read write ask")
    tokens = {"full": full, "reading": reading, "asking": asking, "bob": of_bob}
    return {"alice": alice, "tokens": tokens} | {name: client_of(cato, token) for name, token in tokens.items()}


@pytest.fixture(scope="module")
def client(people) -> OpenAI:
    return people["full"]


def client_of(cato, token: str) -> OpenAI:
    return OpenAI(base_url=f"{cato.url}/v1", api_key=token, max_retries=0, timeout=30)


def unique(text: str) -> str:
    """Return a unique text: an equal conversation would be recognised as the same thread."""
    return f"{text} ({uuid.uuid4().hex[:6]})"


def ask(client: OpenAI, input, **options):
    return client.responses.create(model=options.pop("model", "cato"), input=input, **options)


def output_of(call, text: str) -> dict:
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


def turns_of(cato, response) -> list[tuple[str, str]]:
    query = "SELECT message, answer FROM chat_turn WHERE thread_id = ? AND is_on_active_branch ORDER BY position"
    return cato.sql(query, uuid.UUID(response.cato["thread"]).hex)


def remembered(cato, response) -> list[tuple]:
    query = "SELECT id FROM memory_exchange WHERE thread_id = ? AND NOT is_inactive"
    return cato.sql(query, uuid.UUID(response.cato["thread"]).hex)


def prompt_of(endpoint) -> list[dict]:
    return endpoint.requests(KEY)[-1]["messages"]


def test_a_response_has_openais_format_a_thread_and_what_was_recalled(client, cato, people, endpoint):
    endpoint.script(KEY, answer="The tide turns at four.")
    question = unique("When does the tide turn?")
    response = ask(client, question, metadata={"run": "7"})

    assert (response.object, response.status, response.error) == ("response", "completed", None)
    assert response.output_text == "The tide turns at four."
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.metadata == {"run": "7"}
    assert response.cato["recalled"] == [] or response.cato["recalled"][0]["id"]
    assert question in people["alice"].thread_page(response.cato["thread"])
    assert len(remembered(cato, response)) == 1


def test_events_are_typed_numbered_and_complete(client, endpoint):
    endpoint.script(KEY, answer="One word after the other.", token_delay=0.3)
    events = list(ask(client, unique("Slowly"), stream=True))

    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 1
    assert [kind for kind in kinds if kind != "response.output_text.delta"] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    final = events[-1].response
    assert "".join(deltas) == final.output_text == "One word after the other."
    assert events[0].response.id == final.id
    assert final.usage.output_tokens == 5
    assert {"thread", "turn", "recalled", "is_dummy"} == set(final.cato)


def test_the_wire_format_is_that_of_server_sent_events(cato, people):
    body = {"model": "cato", "input": unique("Raw"), "stream": True}
    answer = httpx.post(
        f"{cato.url}/v1/responses", json=body, headers={"Authorization": f"Bearer {people['tokens']['full']}"}
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.strip().split("\n\n")
    for block in blocks:
        name, data = block.split("\n")
        assert name.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]
    assert answer.headers["X-Cato-Thread"] == json.loads(blocks[-1].split("data: ")[1])["response"]["cato"]["thread"]


def test_a_previous_response_continues_its_thread(client, cato, endpoint):
    endpoint.script(KEY, answer=["The archive moved.", "To the cellar."])
    first = ask(client, unique("What happened?"), instructions="Be brief.")
    second = ask(client, "Where to?", previous_response_id=first.id)

    assert second.cato["thread"] == first.cato["thread"]
    assert second.previous_response_id == first.id
    assert prompt_of(endpoint)[-2]["content"] == "The archive moved."
    assert prompt_of(endpoint)[-1]["content"].endswith("Where to?"), "after what was recalled"
    assert "Be brief." in prompt_of(endpoint)[0]["content"]
    assert len(turns_of(cato, first)) == 2


def test_the_whole_input_continues_its_thread_as_well(client, endpoint):
    question = unique("First")
    first = ask(client, question)
    items = [{"role": "user", "content": question}, *[item.model_dump() for item in first.output]]
    second = ask(client, [*items, {"role": "user", "content": "Second"}])
    assert second.cato["thread"] == first.cato["thread"]


def test_two_continuations_of_one_response_replace_nothing(client, cato, endpoint):
    endpoint.script(KEY, answer=["One.", "Two.", "Three."])
    first = ask(client, unique("Begin"), instructions="Count.")
    ask(client, "Go on", previous_response_id=first.id)
    other = ask(client, "Go elsewhere", previous_response_id=first.id)

    assert other.cato["thread"] != first.cato["thread"]
    assert [answer for _message, answer in turns_of(cato, first)] == ["One.", "Two."]
    assert [answer for _message, answer in turns_of(cato, other)] == ["One.", "Three."]
    assert "Count." in prompt_of(endpoint)[0]["content"]


def forget(cato, people, response) -> uuid.UUID:
    """Forget the exchange of a response, and return its id."""
    query = "SELECT exchange_id FROM chat_turn WHERE id = ?"
    ((hex_id,),) = cato.sql(query, uuid.UUID(response.cato["turn"]).hex)
    exchange_id = uuid.UUID(hex_id)
    headers = {"Authorization": f"Bearer {people['tokens']['full']}"}
    assert httpx.delete(f"{cato.url}/api/exchanges/{exchange_id}", headers=headers).status_code == 200
    return exchange_id


def test_an_earlier_response_continues_a_fork_without_what_was_forgotten(client, cato, people, endpoint):
    endpoint.script(KEY, answer=["A secret.", "Two.", "Three.", "Four.", "Five."])
    secret = unique("The code is 4711")
    first = ask(client, secret)
    second = ask(client, "Go on", previous_response_id=first.id)
    ask(client, "Go further", previous_response_id=second.id)
    forgotten = forget(cato, people, first)

    fork = ask(client, "Go elsewhere", previous_response_id=second.id)

    assert secret not in json.dumps(prompt_of(endpoint))
    assert "Two." in json.dumps(prompt_of(endpoint))
    copies = "SELECT copied_exchange_id FROM chat_turn WHERE thread_id = ? ORDER BY position"
    copied = cato.sql(copies, uuid.UUID(fork.cato["thread"]).hex)
    assert copied[0] == (forgotten.hex,), "forgetting reaches the copy"
    items = [{"role": "user", "content": "Go elsewhere"}, *[item.model_dump() for item in fork.output]]
    whole = [{"role": "user", "content": secret}, {"role": "assistant", "content": "A secret."}, *items]
    again = ask(client, [*whole, {"role": "user", "content": "And then?"}])
    assert again.cato["thread"] == fork.cato["thread"], "the whole conversation continues the fork"


def test_a_forgotten_response_is_not_continued(client, cato, people, endpoint):
    endpoint.script(KEY, answer=["One.", "Two.", "Three."])
    first = ask(client, unique("The code is 4711"))
    ask(client, "Go on", previous_response_id=first.id)
    forget(cato, people, first)
    with pytest.raises(openai.NotFoundError):
        ask(client, "Go elsewhere", previous_response_id=first.id)


def test_a_fork_of_a_shared_thread_keeps_the_authors(client, cato, people):
    headers = {"Authorization": f"Bearer {people['tokens']['full']}"}
    created = httpx.post(f"{cato.url}/api/threads", json={"title": "Shared", "space": "team"}, headers=headers)
    shared = {"X-Cato-Thread": created.json()["id"]}
    ask(people["bob"], "Bob begins", extra_headers=shared)
    own = ask(client, "Alice goes on", extra_headers=shared)
    ask(people["bob"], "Bob ends", extra_headers=shared)

    fork = ask(client, "Alice goes elsewhere", previous_response_id=own.id)

    people_of = "chat_turn JOIN people_user ON author_id = people_user.id"
    query = f"SELECT message, name FROM {people_of} WHERE thread_id = ? ORDER BY position"
    assert cato.sql(query, uuid.UUID(fork.cato["thread"]).hex) == [
        ("Bob begins", "Bob Responses"),
        ("Alice goes on", "Alice Responses"),
        ("Alice goes elsewhere", "Alice Responses"),
    ]


def run_agent(ask_once, question: str) -> list:
    """Answer calls by previous_response_id until the model calls nothing more; return the responses."""
    responses = [ask_once(question)]
    while calls := [item for item in responses[-1].output if item.type == "function_call"]:
        outputs = [output_of(call, f"result {len(responses)}") for call in calls]
        responses.append(ask_once(outputs, previous_response_id=responses[-1].id))
    return responses


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_agent_runs_functions_for_several_rounds_in_one_turn(client, cato, endpoint, is_streamed):
    endpoint.script(KEY, answer=["Let me see.", "", "Sunny."], calls=[[WEATHER, WEATHER], [WEATHER]])

    def ask_once(input, **options):
        if not is_streamed:
            return ask(client, input, tools=[TOOL], **options)
        with client.responses.stream(model="cato", input=input, tools=[TOOL], **options) as stream:
            return stream.get_final_response()

    first, second, last = run_agent(ask_once, unique("How is the weather?"))

    assert [item.type for item in first.output] == ["message", "function_call", "function_call"]
    assert [item.type for item in second.output] == ["function_call"]
    assert json.loads(first.output[1].arguments) == {"city": "Ålesund"}
    assert last.output_text == "Sunny."
    assert len({first.id, second.id, last.id}) == 3
    assert len({first.cato["turn"], second.cato["turn"], last.cato["turn"]}) == 1
    assert [m["role"] for m in prompt_of(endpoint)[1:]] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [row[1] for row in turns_of(cato, last)] == ["Sunny."]
    assert len(remembered(cato, last)) == 1

    sent = endpoint.requests(KEY)[-1]["tools"][0]
    assert sent == {"type": "function", "function": {k: v for k, v in TOOL.items() if k != "type"}}
    for response in (first, second, last):
        saved = client.responses.retrieve(response.id)
        assert [item.id for item in saved.output] == [item.id for item in response.output]
        assert saved.output_text == response.output_text


def test_an_agent_can_send_all_items_again(client, cato, endpoint):
    endpoint.script(KEY, answer=["Let me see.", "Sunny."], calls=[[WEATHER]])
    items: list = [{"role": "user", "content": unique("How is it?")}]
    first = ask(client, items, tools=[TOOL], store=False, include=["reasoning.encrypted_content"])
    items += [*first.output, output_of(first.output[1], "sun")]
    last = ask(client, items, tools=[TOOL], store=False)

    assert (last.output_text, last.cato["turn"]) == ("Sunny.", first.cato["turn"])
    assert remembered(cato, last) == [], "store=False"


def test_results_after_an_answered_round_begin_a_thread(client, cato, endpoint):
    endpoint.script(KEY, answer=["", "Sunny.", "Rainy."], calls=[[WEATHER]])
    first = ask(client, unique("How is it?"), tools=[TOOL])
    outputs = [output_of(first.output[0], "sun")]
    last = ask(client, outputs, tools=[TOOL], previous_response_id=first.id)
    again = ask(client, [output_of(first.output[0], "rain")], tools=[TOOL], previous_response_id=first.id)

    assert again.cato["thread"] != last.cato["thread"]
    assert turns_of(cato, last)[0][1] == "Sunny."
    assert prompt_of(endpoint)[-1] == {"role": "tool", "tool_call_id": first.output[0].call_id, "content": "rain"}


def test_a_call_without_its_output_is_refused(client, endpoint):
    endpoint.script(KEY, answer="", calls=[[WEATHER]])
    first = ask(client, unique("How is it?"), tools=[TOOL])
    with pytest.raises(openai.BadRequestError, match="must be followed by a tool message") as refused:
        ask(client, "Well?", previous_response_id=first.id)
    assert refused.value.param == "input"


def test_structured_output_is_parsed(client, endpoint):
    class Key(BaseModel):
        place: str

    endpoint.script(KEY, answer='{"place": "cellar"}')
    parsed = client.responses.parse(model="cato", input=unique("Where is the key?"), text_format=Key)
    assert parsed.output_parsed == Key(place="cellar")
    format = endpoint.requests(KEY)[-1]["response_format"]
    assert (format["type"], format["json_schema"]["name"]) == ("json_schema", "Key")
    assert format["json_schema"]["schema"]["required"] == ["place"]


def test_options_are_passed_on_and_returned(client, endpoint):
    options = {
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 30,
        "reasoning": {"effort": "low"},
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_object"}},
    }
    response = ask(client, unique("With options"), **options)
    request = endpoint.requests(KEY)[-1]

    assert (request["temperature"], request["top_p"], request["reasoning_effort"]) == (0.0, 0.5, "low")
    assert request.get("max_tokens", request.get("max_completion_tokens")) == 30
    assert request["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert request["parallel_tool_calls"] is False
    assert request["response_format"] == {"type": "json_object"}
    assert response.tool_choice.name == "weather"
    assert (response.temperature, response.max_output_tokens, response.text.format.type) == (0.0, 30, "json_object")


def test_images_are_embedded(client, endpoint):
    def ask_about(address: str):
        parts = [{"type": "input_text", "text": unique("What is it?")}, {"type": "input_image", "image_url": address}]
        return ask(client, [{"role": "user", "content": parts}])

    ask_about(f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    assert [part["type"] for part in prompt_of(endpoint)[-1]["content"]] == ["text", "image_url"]
    with pytest.raises(openai.BadRequestError, match="data: addresses") as refused:
        ask_about("https://example.org/key.png")
    assert refused.value.param == "input"


@pytest.mark.parametrize(("reason", "name"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_off_is_incomplete(reason, name):
    turn = Turn(answer="Half an answ", finish_reason=reason, state="complete", created_at=timezone.now())
    response = completed_response(ResponseRound(turn, 0), AnswerResult(turn, []))
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": name})
    assert response["output"][0]["content"][0]["text"] == "Half an answ"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refusal_is_a_part_of_its_own(client, endpoint, is_streamed):
    endpoint.script(KEY, answer="I cannot help with that.", refuses=True)
    question = unique("How do I pick this lock?")
    if is_streamed:
        events = list(ask(client, question, stream=True))
        kinds = [event.type for event in events]
        assert "".join(event.delta for event in events if event.type == "response.refusal.delta") == (
            "I cannot help with that."
        )
        assert kinds[-4:-1] == ["response.refusal.done", "response.content_part.done", "response.output_item.done"]
        assert "response.output_text.delta" not in kinds
        response = events[-1].response
    else:
        response = ask(client, question)

    (part,) = response.output[0].content
    assert (part.type, part.refusal) == ("refusal", "I cannot help with that.")
    following = ask(
        client, [{"role": "user", "content": question}, *response.output, {"role": "user", "content": "Why?"}]
    )
    assert following.cato["thread"] == response.cato["thread"]
    assert {"role": "assistant", "content": "I cannot help with that."} in prompt_of(endpoint)


def test_a_failure_is_an_error_or_an_event(client, endpoint):
    endpoint.script(KEY, mode="error-500")
    question = unique("Fail")
    with pytest.raises(openai.InternalServerError):
        ask(client, question)
    endpoint.script(KEY, mode="cut")
    last = list(ask(client, question, stream=True))[-1]
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.error.message


def test_a_client_that_closes_its_stream_stops_the_answer(client, cato, endpoint):
    endpoint.script(KEY, answer="word " * 400, token_delay=0.1)
    with ask(client, unique("Tell me everything"), stream=True) as stream:
        created = next(iter(stream)).response
    state = "SELECT state FROM chat_turn WHERE id = ?"
    wait_for(
        lambda: cato.sql(state, uuid.UUID(created.cato["turn"]).hex) == [("stopped",)],
        "the answer to be stopped",
    )
    assert client.responses.retrieve(created.id).status == "completed"


def test_a_running_response_is_in_progress(people, endpoint):
    endpoint.script(KEY, answer="word " * 40, token_delay=0.1)
    client = people["full"]
    with ask(client, unique("Take your time"), stream=True) as stream:
        created = next(iter(stream)).response
        assert client.responses.retrieve(created.id).status == "in_progress"


def test_responses_are_returned_to_their_own_person_and_token(client, people):
    response = ask(client, unique("Mine"))
    assert client.responses.retrieve(response.id).output_text == "All right."
    assert people["reading"].responses.retrieve(response.id).id == response.id
    own = ask(people["asking"], unique("Of this token"))
    assert people["asking"].responses.retrieve(own.id).id == own.id
    for other in (people["bob"], people["asking"]):
        with pytest.raises(openai.NotFoundError):
            other.responses.retrieve(response.id)
        with pytest.raises(openai.NotFoundError):
            ask(other, "And then?", previous_response_id=response.id)
    for missing in ("resp_1", f"resp_{uuid.uuid4().hex}_0", f"{response.id}7"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(missing)


def test_asking_needs_the_scope(people):
    with pytest.raises(openai.PermissionDeniedError):
        ask(people["reading"], "Hi")


def test_a_repeated_idempotency_key_creates_one_turn(client, cato, endpoint):
    question, key = unique("Once"), {"Idempotency-Key": uuid.uuid4().hex}
    assert len({ask(client, question, extra_headers=key).id for _ in range(2)}) == 1


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [TOOL], "tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"extra_body": {"n": 2}}, "n"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "top_logprobs"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"input": []}, "input"),
        ({"input": "  "}, None),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, "input"),
        ({"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, I"}]}, "input"),
        ({"extra_headers": {"X-Cato-Background": "yes"}}, "X-Cato-Background"),
    ],
)
def test_unsupported_input_is_refused_by_name(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**({"model": "cato", "input": "Hi"} | options))
    assert (refused.value.param or "").split(".0")[0] == (param or "")
    assert refused.value.body["type"] == "invalid_request_error"
    assert refused.value.body["message"]

"""Programs that speak OpenAI's protocol, here its own client: Cato answers them as it does its pages, and remembers."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest
from openai import OpenAI

from cato_web.openai_api import models
from chat.answers import runner
from chat.executors import run_in_db_thread
from chat.services import ClientConversation, submit_conversation
from memory.models import Exchange
from tests import server
from tests.factories import PNG, PersonFactory, api_client
from tests.server import wait_for
from tests.tokens import create_tokens

KEY = "cato"


@pytest.fixture(autouse=True)
def plain_answers(endpoint):
    endpoint.script(KEY, answer="All right.")


@pytest.fixture(scope="module")
def people(cato, administrator):
    """Alice and Bob, each with a token for everything, and one of Alice's that only reads."""
    alice, bob = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    of_alice, reading = create_tokens(cato, alice, "read write ask", "read")
    (of_bob,) = create_tokens(cato, bob, "read write ask")
    return {"alice": alice, "token": of_alice, "reading": reading, "bob": of_bob}


@pytest.fixture(scope="module")
def alice(people) -> server.Client:
    return people["alice"]


def client_of(cato, token: str) -> OpenAI:
    return OpenAI(base_url=f"{cato.url}/v1", api_key=token, max_retries=0, timeout=30)


@pytest.fixture(scope="module")
def client(cato, people) -> OpenAI:
    return client_of(cato, people["token"])


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def ask(client: OpenAI, *messages, **more):
    return client.chat.completions.create(model=more.pop("model", "cato"), messages=list(messages), **more)


def thread_of(answer) -> str:
    return answer.cato["thread"]


def standing(cato, thread: str) -> list[tuple[str, str]]:
    """What stands in the thread: messages and answers, in their order."""
    query = "SELECT message, answer FROM chat_turn WHERE thread_id = ? AND stands ORDER BY position"
    return cato.sql(query, uuid.UUID(thread).hex)


def findable(cato, thread: str) -> list[str]:
    """What memory would bring back of what was said in the thread."""
    query = "SELECT user_message, assistant_message FROM memory_exchange WHERE thread_id = ? AND NOT is_hidden"
    return sorted(f"{said} {answered}" for said, answered in cato.sql(query, uuid.UUID(thread).hex))


def prompt_of(endpoint) -> list[dict]:
    return endpoint.requests(KEY)[-1]["messages"]


def unique(text: str) -> str:
    """The same words would be found again as the same conversation."""
    return f"{text} ({uuid.uuid4().hex[:6]})"


def test_an_answer_has_openais_form_and_stands_in_a_thread_of_its_own(client, cato, alice, endpoint):
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


def test_a_streamed_answer_comes_in_pieces_and_ends_with_what_it_cost(client, endpoint):
    endpoint.script(KEY, answer="One word after the other.", token_delay=0.1)
    stream = ask(client, user(unique("Slowly")), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)

    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(pieces) == "One word after the other."
    assert len(pieces) > 2
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5
    assert len({chunk.id for chunk in chunks}) == 1


def test_events_are_openais_to_the_byte_and_name_the_thread(cato, people):
    body = {"model": "cato", "messages": [user(unique("Hello"))], "stream": True}
    headers = {"Authorization": f"Bearer {people['token']}", "Accept-Encoding": "gzip"}
    answer = httpx.post(f"{cato.url}/v1/chat/completions", json=body, headers=headers, timeout=30)

    assert answer.headers["content-type"] == "text/event-stream"
    assert "content-encoding" not in answer.headers
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert answer.headers["x-cato-thread"] in lines[0]


def test_several_turns_are_one_thread(client, cato):
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
    assert [message for message, _ in standing(cato, thread_of(one))] == [first, "What is it called?", "Thanks"]


def test_what_was_said_in_the_browser_is_recalled_and_what_a_program_says_is_remembered(client, alice, endpoint):
    said = alice.send_message("The ferry to Sandoe leaves from the north pier at seven.")
    wait_for(lambda: "Remembered</span>" in alice.thread_page(said), "the exchange to be remembered")
    answer = ask(client, user("Where does the ferry to Sandoe leave from?"))

    assert "north pier" in prompt_of(endpoint)[-1]["content"]
    (recalled, *_) = answer.cato["recalled"]
    assert "north pier" in recalled["excerpt"]
    assert recalled["who"] == "Alice Owner"
    assert recalled["similarity"] > 0.3
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread_of(answer)), "it to be remembered too")


def test_a_programs_system_messages_join_the_prompt_of_the_thread(client, alice, endpoint):
    first = unique("Ahoy")
    answer = ask(client, {"role": "system", "content": "Speak like a harbour pilot."}, user(first))
    (system, *_) = prompt_of(endpoint)
    assert system["role"] == "system"
    assert system["content"].endswith("\n\nSpeak like a harbour pilot.")
    assert len(system["content"]) > 200

    alice.send_message("And in the browser?", thread=thread_of(answer))
    wait_for(lambda: prompt_of(endpoint)[-1]["content"].endswith("in the browser?"), "the browser's question")
    assert prompt_of(endpoint)[0]["content"].endswith("Speak like a harbour pilot.")


def test_conversations_that_begin_with_the_same_message_stay_apart(client, cato, endpoint):
    """Two tabs, scripts or agents say the same first and get the same answer; then each goes its own way."""
    first = unique("Hi there, twin")
    one, other = ask(client, user(first)), ask(client, user(first))
    assert thread_of(one) != thread_of(other)

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
    assert findable(cato, thread_of(of_a)) == sorted(
        [f"{first} All right.", "Project A: the vault code is 1122 All right.", "Which project is this? All right."]
    )
    assert findable(cato, thread_of(of_b)) == sorted(
        [f"{first} All right.", "Project B: the vault code is 3344 All right."]
    )


def test_a_conversation_whose_thread_has_moved_on_gets_a_thread_of_its_own_and_hides_nothing(client, cato):
    first = unique("Let us talk of boats")
    thread = thread_of(ask(client, user(first)))
    ask(client, user(first), assistant("All right."), user("Of rowing boats"))
    other = ask(client, user(first), assistant("All right."), user("Of sailing boats"))

    assert thread_of(other) != thread
    assert [message for message, _ in standing(cato, thread)] == [first, "Of rowing boats"]
    assert findable(cato, thread) == sorted([f"{first} All right.", "Of rowing boats All right."])
    assert [message for message, _ in standing(cato, thread_of(other))] == [first, "Of sailing boats"]
    assert findable(cato, thread_of(other)) == ["Of sailing boats All right."]


def test_a_conversation_of_another_token_gets_a_thread_of_its_own(client, cato, people):
    first = unique("My boat is called Petrel")
    one = ask(client, user(first))
    (another,) = create_tokens(cato, people["alice"], "read write ask")
    other = ask(client_of(cato, another), user(first), assistant("All right."), user("What is it called?"))
    assert thread_of(other) != thread_of(one)


def test_the_same_question_to_two_models_at_once_has_two_answers(client, cato, endpoint):
    endpoint.script(KEY, answer="It is red, I think.", token_delay=0.1)
    question = unique("Which colour has the buoy?")
    with ThreadPoolExecutor(4) as pool:
        wanted = ["fake", "fake-large", "fake", "fake"]
        answers_ = list(pool.map(lambda model: ask(client, user(question), model=model), wanted))

    assert [answer.model for answer in answers_] == wanted
    assert len({answer.cato["turn"] for answer in answers_}) == 4
    assert len({thread_of(answer) for answer in answers_}) == 4


def test_two_models_asked_at_once_in_a_named_thread_answer_each(client, cato, alice, endpoint):
    thread = alice.send_message(unique("The sail is torn"))
    wait_for(lambda: standing(cato, thread)[0][1], "the answer")
    endpoint.script(KEY, answer="It is torn.", token_delay=0.1)
    with ThreadPoolExecutor(2) as pool:
        named = {"extra_headers": {"X-Cato-Thread": thread}}
        wanted = ["fake", "fake-large"]
        answers_ = list(pool.map(lambda model: ask(client, user("What is torn?"), model=model, **named), wanted))

    assert [answer.model for answer in answers_] == wanted
    assert len({answer.cato["turn"] for answer in answers_}) == 2
    assert cato.sql("SELECT model FROM chat_thread WHERE id = ?", uuid.UUID(thread).hex) == [("",)]


def test_in_a_named_thread_the_same_message_again_regenerates_its_answer(client, cato, endpoint):
    endpoint.script(KEY, answer=["Noted.", "It is red.", "It is blue."])
    first, second = unique("There is a buoy"), "Which colour has it?"
    thread = thread_of(ask(client, user(first)))
    named = {"extra_headers": {"X-Cato-Thread": thread}}
    conversation = user(first), assistant("Noted."), user(second)
    ask(client, *conversation, **named)
    ask(client, *conversation, **named)

    assert standing(cato, thread) == [(first, "Noted."), (second, "It is blue.")]
    assert findable(cato, thread) == sorted([f"{first} Noted.", f"{second} It is blue."])


def test_in_a_named_thread_another_message_in_its_place_is_an_edit(client, cato):
    first = unique("Let us talk of boats")
    thread = thread_of(ask(client, user(first)))
    named = {"extra_headers": {"X-Cato-Thread": thread}}
    ask(client, user(first), assistant("All right."), user("Of rowing boats"), **named)
    ask(client, user(first), assistant("All right."), user("Of sailing boats"), **named)

    assert [message for message, _ in standing(cato, thread)] == [first, "Of sailing boats"]
    assert [text for text in findable(cato, thread) if "rowing" in text] == []


def test_a_history_that_cato_does_not_know_is_taken_into_a_thread_and_not_remembered_twice(client, cato, endpoint):
    first = unique("I moor at berth nine")
    one = ask(client, user(first))
    other = ask(client, user(first), assistant("Berth nine, noted, and berth ten is free."), user("Which is free?"))

    assert thread_of(other) != thread_of(one)
    told = [message["content"] for message in prompt_of(endpoint)]
    assert "Berth nine, noted, and berth ten is free." in told
    assert first in told
    assert findable(cato, thread_of(other)) == ["Which is free? All right."]
    assert len(standing(cato, thread_of(one))) == 1


def test_what_was_said_in_the_browser_meanwhile_is_not_pushed_aside(client, cato, alice):
    first = unique("Plan the trip")
    thread = thread_of(ask(client, user(first)))
    alice.send_message("Take the charts along", thread=thread)
    wait_for(lambda: len(standing(cato, thread)) == 2 and standing(cato, thread)[1][1], "the browser's answer")
    named = {"extra_headers": {"X-Cato-Thread": thread}}
    ask(client, user(first), assistant("All right."), user("What else?"), **named)

    assert [message for message, _ in standing(cato, thread)] == [first, "Take the charts along", "What else?"]


def test_a_thread_can_be_named_and_then_the_new_message_is_enough(client, cato, alice, endpoint):
    thread = alice.send_message(unique("The sail is torn"))
    wait_for(lambda: standing(cato, thread)[0][1], "the answer")
    answer = ask(client, user("What is torn?"), extra_headers={"X-Cato-Thread": thread})

    assert thread_of(answer) == thread
    assert any("The sail is torn" in str(message["content"]) for message in prompt_of(endpoint)[1:-1])


def test_another_persons_thread_and_none_at_all_look_the_same(cato, people, client):
    thread = thread_of(ask(client, user(unique("Mine alone"))))
    refusals = []
    for name in (thread, str(uuid.uuid4())):
        with pytest.raises(openai.NotFoundError) as refused:
            ask(client_of(cato, people["bob"]), user("Let me in"), extra_headers={"X-Cato-Thread": name})
        refusals.append(refused.value.body)
    assert refusals[0] == refusals[1]
    assert "Let me in" not in str(standing(cato, thread))


def test_the_same_words_of_another_person_are_another_thread(cato, people, client):
    first = unique("Where is the anchor?")
    mine, theirs = ask(client, user(first)), ask(client_of(cato, people["bob"]), user(first))
    assert thread_of(mine) != thread_of(theirs)


def test_a_request_sent_twice_with_its_key_is_one_turn(client, cato):
    first, key = unique("Once only"), {"Idempotency-Key": uuid.uuid4().hex}
    one, two = ask(client, user(first), extra_headers=key), ask(client, user(first), extra_headers=key)

    assert one.id == two.id
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_a_client_that_goes_away_stops_nothing_and_may_come_back_for_the_answer(cato, people, endpoint):
    endpoint.script(KEY, answer="It is worth waiting for this.", token_delay=0.15)
    first = unique("Is it worth waiting?")
    impatient, key = client_of(cato, people["token"]), {"Idempotency-Key": uuid.uuid4().hex}
    for _chunk in (stream := ask(impatient, user(first), stream=True, extra_headers=key)):
        break
    stream.close()
    answer = ask(impatient, user(first), extra_headers=key)

    assert answer.choices[0].message.content == "It is worth waiting for this."
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_a_program_may_ask_not_to_be_remembered(client, cato):
    answer = ask(client, user(unique("Off the record")), extra_headers={"X-Cato-Remember": "no"})

    assert standing(cato, thread_of(answer))
    assert findable(cato, thread_of(answer)) == []


def test_a_model_that_fails_is_an_error_with_its_sentence_and_trying_again_is_the_same_turn(client, cato, endpoint):
    endpoint.script(KEY, mode="error-500", fail_times=2)
    first = unique("Are you there?")
    with pytest.raises(openai.InternalServerError) as failed:
        ask(client, user(first))
    assert failed.value.status_code == 502
    assert "Try again" in str(failed.value)
    with pytest.raises(openai.APIError, match="Try again"):
        list(ask(client, user(first), stream=True))

    assert ask(client, user(first)).choices[0].message.content
    assert len(cato.sql("SELECT id FROM chat_turn WHERE message = ?", first)) == 1


def test_pictures_come_along_as_data_and_from_nowhere_else(client, endpoint):
    def asked(address: str):
        parts = [
            {"type": "text", "text": unique("What is this?")},
            {"type": "image_url", "image_url": {"url": address}},
        ]
        return ask(client, {"role": "user", "content": parts})

    asked(f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    assert [part["type"] for part in prompt_of(endpoint)[-1]["content"]] == ["text", "image_url"]
    with pytest.raises(openai.BadRequestError, match="data: addresses"):
        asked("https://example.org/key.png")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]}, "tools"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": []}, "messages"),
        ({"messages": [user("Hi"), assistant("Hello, I")]}, "messages"),
        ({"messages": [user("   ")]}, None),
    ],
)
def test_what_cato_does_not_do_is_refused_and_said(client, more, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**({"model": "cato", "messages": [user("Hi")]} | more))
    assert refused.value.param == param
    assert refused.value.body["type"] == "invalid_request_error"
    assert refused.value.body["message"]


def test_only_a_token_with_the_scope_opens_the_door(cato, people, alice):
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(client_of(cato, "cato_wrong"), user("Hi"))
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.PermissionDeniedError):
        ask(client_of(cato, people["reading"]), user("Hi"))
    assert client_of(cato, people["reading"]).models.list().data
    # A browser's cookie is no token.
    assert alice.get("/v1/models").status_code == 401


def test_models_are_listed_and_an_unknown_one_is_refused(client, endpoint):
    names = [model.id for model in client.models.list()]
    assert {"cato", "fake", "fake-large", "all-MiniLM-L6-v2"} <= set(names)
    assert client.models.retrieve("fake-large").object == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-none")
    with pytest.raises(openai.NotFoundError) as refused:
        ask(client, user("Hi"), model="gpt-none")
    assert refused.value.code == "model_not_found"

    answer = ask(client, user(unique("Who answers?")), model="fake-large")
    assert answer.model == "fake-large"
    assert endpoint.requests(KEY)[-1]["model"] == "fake-large"


def test_embeddings_are_memorys_own_in_both_writings(client):
    from django.conf import settings

    from memory import embeddings

    texts = ["the harbour master's office", "ein Boot", "the harbour master's office"]
    floats = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts, encoding_format="float")
    packed = client.embeddings.create(model="cato", input=texts)  # the client asks for base64 by itself

    own = embeddings.get_embedder(settings.CATO.vector_store).embed_documents(texts)
    assert np.allclose([row.embedding for row in floats.data], own, atol=1e-5)
    assert np.allclose([row.embedding for row in packed.data], own, atol=1e-5)
    assert [row.index for row in floats.data] == [0, 1, 2]
    one = client.embeddings.create(model="cato", input="ein Boot", dimensions=384)
    assert np.allclose(one.data[0].embedding, own[1], atol=1e-5)


@pytest.mark.parametrize("more", [{"input": [1, 2]}, {"input": ""}, {"input": []}, {"dimensions": 3}])
def test_what_cannot_be_embedded_is_said(client, more):
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(**({"model": "cato", "input": "a text"} | more))


def test_other_addresses_say_in_openais_words_that_nothing_is_there(client):
    with pytest.raises(openai.NotFoundError) as refused:
        client.responses.create(model="cato", input="Hi")
    assert refused.value.code == "unknown_url"


@pytest.mark.django_db(transaction=True)
def test_without_a_model_programs_get_the_placeholder_whatever_model_they_name(settings):
    settings.CATO = settings.CATO.model_copy(update={"dummy_mode": True})
    person = PersonFactory()
    api_client(person)
    token = person.api_tokens.get()

    async def asked() -> dict:
        assert await models.resolve_model("gpt-anything", None) is None
        switched = await run_in_db_thread(
            submit_conversation,
            person.pk,
            ClientConversation("Hello"),
            client_key=uuid.uuid4(),
            api_token_id=token.pk,
        )
        await runner.run_answer(switched.posted.turn.id)
        return await answers.whole(switched.posted.turn, token.pk)

    said = asyncio.run(asked())
    assert "Placeholder: no model is connected." in said["choices"][0]["message"]["content"]
    assert said["usage"] is None
    assert not Exchange.objects.exists()


def test_answers_under_way_hold_no_database_connection(client, cato, endpoint):
    """Twenty answers at once, each longer than a pool's time-out would bear, with pages served meanwhile."""
    import threading

    endpoint.script(KEY, answer="one two three four five six", token_delay=0.2)
    heard: list[str] = []

    def listen() -> None:
        heard.append("".join(c.choices[0].delta.content or "" for c in ask(client, user(unique("Go")), stream=True)))

    listeners = [threading.Thread(target=listen) for _ in range(20)]
    for listener in listeners:
        listener.start()
    time.sleep(0.4)
    assert httpx.get(f"{cato.url}/healthz").status_code == 200
    for listener in listeners:
        listener.join()
    assert heard == ["one two three four five six"] * 20


def test_where_programs_may_not_come_in_nothing_is_there(settings):
    from django.test import Client

    closed = settings.CATO.api.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"api": closed})
    answer = Client().get("/v1/models", headers={"Authorization": "Bearer cato_any"})

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"

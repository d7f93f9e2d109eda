"""Threads as pages: long ones, their sessions, the queue, and what a prompt is made of."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from chat import services
from chat.answers import persistence
from chat.errors import ConflictError
from chat.llm import endpoint
from chat.llm.prompts import build_prompt, fit_history
from chat.models import Endpoint, Thread, ThreadSession, Turn
from chat.realtime.sync import WINDOW
from memory.spaces import access
from tests.factories import PersonFactory, exchange, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def page(alice, chroma):
    client = Client()
    client.force_login(alice)
    return client


def test_every_turn_of_a_long_thread_can_be_reached_and_its_memory_leads_to_it(alice, page):
    long = thread(alice)
    turns = [turn(long, f"Question {n}", f"Answer {n}") for n in range(3 * WINDOW)]
    said = exchange(alice, "Question 20", "Answer 20", thread_id=long.id, turn_id=turns[20].id)

    latest = page.get(f"/t/{long.id}").content.decode()
    assert f"Question {3 * WINDOW - 1}" in latest
    assert "Question 20<" not in latest
    assert "Load earlier turns" in latest

    place = page.get(f"/m/{said.id}").headers["location"]
    there = page.get(place.split("#")[0]).content.decode()
    assert place.endswith(f"#turn-{turns[20].id}")
    assert f'id="turn-{turns[20].id}"' in there
    assert 'ws-connect="/ws/t/' not in there


def test_more_data_than_a_form_may_have_gets_a_sentence_beside_the_composer(alice, page):
    own = thread(alice)
    data = {"message": "x" * 3_000_000, "client_key": str(uuid.uuid4())}
    answer = page.post(f"/t/{own.id}/say", data, headers={"HX-Request": "true"})

    assert answer.status_code == 400
    assert "Shorten it" in answer.content.decode()
    assert own.turns.count() == 0


def test_writing_after_a_rest_begins_the_next_session(alice):
    first = services.create_thread_with_message(alice.id, message="Good morning", client_key=uuid.uuid4()).turn
    Turn.objects.update(state=Turn.State.COMPLETE)
    soon = services.post_message(first.thread, author_id=alice.id, message="Again", client_key=uuid.uuid4()).turn
    Turn.objects.update(state=Turn.State.COMPLETE)
    seven_hours_ago = timezone.now() - timedelta(hours=7)
    Thread.objects.update(last_message_at=seven_hours_ago)
    ThreadSession.objects.update(started_at=seven_hours_ago)
    later = services.post_message(
        first.thread, author_id=alice.id, message="Good evening", client_key=uuid.uuid4()
    ).turn

    assert [t.session.seq for t in (first, soon, later)] == [0, 0, 1]


def test_an_answer_nobody_writes_any_more_is_interrupted_and_what_it_said_is_remembered(alice):
    own = thread(alice)
    dead = turn(own, "A question", "Half an ans", state="answering", heartbeat_at=timezone.now() - timedelta(minutes=1))
    alive = turn(thread(alice), "Another", "Half", state="answering", heartbeat_at=timezone.now())

    assert services.interrupt_stale_answers() == [dead.id]

    dead.refresh_from_db()
    alive.refresh_from_db()
    assert (dead.state, alive.state) == ("interrupted", "answering")
    assert dead.exchange_id is not None
    assert services.resume_turn(dead).state == "recalling"
    with pytest.raises(ConflictError):
        services.resume_turn(alive)


def test_a_queued_message_whose_predecessor_died_begins_by_itself(alice):
    own = thread(alice)
    turn(own, "Died", "", state="interrupted")
    waiting = turn(own, "Waiting", "", state="queued")

    assert services.start_all_queued() == [waiting.id]
    assert services.start_all_queued() == []


def test_the_prompt_is_stable_first_then_recalled_then_new_and_forgets_what_was_forgotten(alice, memory):
    own = thread(alice)
    kept = turn(own, "Kept question", "Kept answer")
    gone = turn(own, "The PIN is 8253", "Noted")
    said = exchange(alice, gone.message, gone.answer, thread_id=own.id, turn_id=gone.id)
    Turn.objects.filter(id=gone.id).update(exchange_id=said.id)
    memory.forget([said.id], by=alice.id)
    new = turn(own, "New question", "", state="recalling")

    history = fit_history(persistence._turns_before(new), max_tokens=1000)
    prompt = build_prompt(history=history, prompt_context="RECALLED", turn=new)

    assert [m["role"] for m in prompt] == ["system", "user", "assistant", "user"]
    assert prompt[1]["content"] == kept.message
    assert prompt[3]["content"].startswith("RECALLED")
    assert "8253" not in str(prompt)


def test_history_that_does_not_fit_is_cut_at_its_beginning(alice):
    own = thread(alice)
    turns = [turn(own, f"Question {n} " + "word " * 50, "Answer") for n in range(10)]

    history = fit_history(turns, max_tokens=200)

    assert 0 < len(history.turns) < 10
    assert history.turns[-1].message.startswith("Question 9")


def test_a_slow_recall_is_answered_without_it_and_the_turn_says_so(alice, page):
    own = thread(alice)
    turn(own, "A question", "An answer", recall_note="slow")

    assert "Recall timed out; answered without memory" in page.get(f"/t/{own.id}").content.decode()


def test_a_key_is_encrypted_at_rest(alice, settings):
    endpoint.save(base_url="http://127.0.0.1:1/v1", api_key="sk-very-secret", model="m")

    assert b"sk-very-secret" not in bytes(Endpoint.objects.get().encrypted_key)
    assert endpoint.current().api_key == "sk-very-secret"
    assert "sk-very-secret" not in repr(endpoint.current())
    settings.SECRET_KEY = "another"
    assert endpoint.current().api_key == ""


def test_people_who_can_recall_it_are_counted(alice, page):
    endpoint.save(base_url="http://127.0.0.1:1/v1", api_key="", model="m")
    own = thread(alice)
    assert "Visible only to you" in page.get(f"/t/{own.id}").content.decode()

    Thread.objects.filter(id=own.id).update(space=access.team_space())
    PersonFactory()
    assert "Visible to 2 people" in page.get(f"/t/{own.id}").content.decode()

"""Thread pages, thread sessions, the queue, and the content of prompts."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from chat import services
from chat.answers.history import earlier_turns
from chat.errors import ConflictError
from chat.llm import endpoint
from chat.llm.prompts import build_prompt, fit_history
from chat.models import Endpoint, ReaderMarks, Thread, ThreadSession, Turn
from chat.realtime.sync import MAX_MISSED, PAGE_SIZE, TooFarBehindError, missing_updates
from memory.spaces import access
from tests.factories import PersonFactory, ago, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def page(alice, chroma):
    return signed_in(alice)


def test_every_turn_of_a_long_thread_is_reachable_and_its_exchange_links_to_it(alice, page):
    long = thread(alice)
    count = MAX_MISSED + PAGE_SIZE
    turns = [turn(long, f"Question {n}", f"Answer {n}") for n in range(count)]

    latest = page.get(f"/t/{long.id}").content.decode()
    assert f"Question {count - 1}<" in latest
    assert f"Question {count - PAGE_SIZE - 1}<" not in latest
    assert "Load earlier turns" in latest

    # A page is live if it has all turns up to the latest.
    for number, is_live in ((20, False), (40, True)):
        stored = exchange(alice, f"Question {number}", thread_id=long.id, turn_id=turns[number].id)
        location = page.get(f"/m/{stored.id}").headers["location"]
        html = page.get(location.split("#")[0]).content.decode()
        assert location.endswith(f"#turn-{turns[number].id}")
        assert f'id="turn-{turns[number].id}"' in html
        assert (f"Question {count - 1}<" in html) == is_live
        assert ('ws-connect="/ws/t/' in html) == is_live


@pytest.mark.parametrize(("read", "begins_earlier"), [(ago(hours=1), True), (ago(hours=-1), False)])
def test_a_page_with_many_unread_turns_begins_earlier(alice, page, read, begins_earlier):
    shared = thread(PersonFactory(), space=access.team_space())
    for n in range(PAGE_SIZE + 5):
        turn(shared, f"Question {n}", completed_at=timezone.now())
    ReaderMarks.objects.create(person=alice, thread=shared, last_read_at=read)
    assert ("Question 0<" in page.get(f"/t/{shared.id}").content.decode()) == begins_earlier


def test_a_synchronisation_adds_nothing_before_the_first_turn_of_a_page(alice):
    long = thread(alice)
    turns = [turn(long, f"Question {n}") for n in range(PAGE_SIZE + 5)]
    shown = turns[-PAGE_SIZE:-2]
    html, revisions = missing_updates(alice.id, long.id, {one.id: one.revision for one in shown})

    assert list(revisions) == [one.id for one in turns[-PAGE_SIZE:]]
    assert [n for n, one in enumerate(turns) if f'id="turn-{one.id}"' in html] == [PAGE_SIZE + 3, PAGE_SIZE + 4]


def test_a_page_that_lacks_more_turns_than_it_gets_is_loaded_again(alice):
    """Turns in between would be neither shown nor offered."""
    long = thread(alice)
    first, *others = [turn(long, f"Question {n}") for n in range(MAX_MISSED + 1)]

    html, _revisions = missing_updates(alice.id, long.id, {first.id: first.revision})
    assert [one for one in others if f'id="turn-{one.id}"' not in html] == []
    turn(long, "One more")
    for known in ({first.id: first.revision}, {}):
        with pytest.raises(TooFarBehindError):
            missing_updates(alice.id, long.id, known)


def test_a_turn_that_was_forgotten_while_a_page_slept_is_replaced_however_old_it_is(alice):
    long = thread(alice)
    shown = [turn(long, f"Question {n}") for n in range(MAX_MISSED + 5)]
    known = {one.id: one.revision for one in shown}
    long.turns.filter(id=shown[1].id).update(message="", answer="", revision=9)
    html, revisions = missing_updates(alice.id, long.id, known)

    assert [one for one in shown if f'id="turn-{one.id}"' in html] == [shown[1]]
    assert revisions[shown[1].id] == 9


def test_a_page_on_which_too_much_has_changed_is_loaded_again(alice):
    long = thread(alice)
    shown = [turn(long, f"Question {n}") for n in range(2 * MAX_MISSED + 1)]
    known = {one.id: one.revision for one in shown}
    long.turns.update(revision=9)

    with pytest.raises(TooFarBehindError):
        missing_updates(alice.id, long.id, known)


def test_an_oversized_form_is_reported_at_the_composer(alice, page):
    own_thread = thread(alice)
    data = {"message": "x" * 3_000_000, "client_key": str(uuid.uuid4())}
    answer = page.post(f"/t/{own_thread.id}/messages", data, headers={"HX-Request": "true"})

    assert answer.status_code == 400
    assert "Shorten it" in answer.content.decode()
    assert own_thread.turns.count() == 0


def test_a_message_after_a_break_starts_a_new_session(alice):
    first = services.create_thread_with_message(alice.id, message="Good morning", client_key=uuid.uuid4()).turn
    Turn.objects.update(state=Turn.State.COMPLETE)
    soon = services.post_message(first.thread_id, author_id=alice.id, message="Again", client_key=uuid.uuid4()).turn
    Turn.objects.update(state=Turn.State.COMPLETE)
    seven_hours_ago = timezone.now() - timedelta(hours=7)
    Thread.objects.update(last_message_at=seven_hours_ago)
    ThreadSession.objects.update(started_at=seven_hours_ago)
    later = services.post_message(
        first.thread_id, author_id=alice.id, message="Good evening", client_key=uuid.uuid4()
    ).turn

    Turn.objects.update(state=Turn.State.COMPLETE)
    last = services.post_message(first.thread_id, author_id=alice.id, message="And?", client_key=uuid.uuid4()).turn

    assert [t.session.seq for t in (first, soon, later, last)] == [0, 0, 1, 1]


def test_an_abandoned_answer_is_interrupted_and_its_text_remembered(alice):
    own_thread = thread(alice)
    dead = turn(
        own_thread, "A question", "Half an ans", state="answering", heartbeat_at=timezone.now() - timedelta(minutes=1)
    )
    alive = turn(thread(alice), "Another", "Half", state="answering", heartbeat_at=timezone.now())

    assert services.interrupt_stale_answers() == [dead.id]

    dead.refresh_from_db()
    alive.refresh_from_db()
    assert (dead.state, alive.state) == ("interrupted", "answering")
    assert dead.exchange_id is not None
    assert services.resume_turn(dead).state == "recalling"
    with pytest.raises(ConflictError):
        services.resume_turn(alive)


def test_a_queued_message_starts_after_its_predecessor_died(alice):
    own_thread = thread(alice)
    turn(own_thread, "Died", "", state="interrupted")
    waiting = turn(own_thread, "Waiting", "", state="queued")

    assert services.start_all_queued() == [waiting.id]
    assert services.start_all_queued() == []


def test_a_prompt_has_a_stable_start_then_context_then_the_message_without_forgotten_turns(alice, memory):
    own_thread = thread(alice)
    kept_turn = turn(own_thread, "Kept question", "Kept answer")
    forgotten_turn = turn(own_thread, "The PIN is 8253", "Noted")
    stored = exchange(
        alice, forgotten_turn.message, forgotten_turn.answer, thread_id=own_thread.id, turn_id=forgotten_turn.id
    )
    Turn.objects.filter(id=forgotten_turn.id).update(exchange_id=stored.id)
    memory.forget([stored.id], by=alice.id)
    new = turn(own_thread, "New question", "", state="recalling")

    history = fit_history(earlier_turns(new), max_tokens=1000)
    prompt = build_prompt(history=history, prompt_context="RECALLED", turn=new, attachments=())

    assert [m["role"] for m in prompt] == ["system", "user", "assistant", "user"]
    assert prompt[1]["content"] == kept_turn.message
    assert prompt[3]["content"].startswith("RECALLED")
    assert forgotten_turn.message not in str(prompt)


def test_too_long_history_is_truncated_at_its_start(alice):
    own_thread = thread(alice)
    turns = [turn(own_thread, f"Question {n} " + "word " * 50, "Answer") for n in range(10)]

    history = fit_history(turns, max_tokens=200)

    assert 0 < len(history.turns) < 10
    assert history.turns[-1].message.startswith("Question 9")


def test_a_slow_recall_is_skipped_and_the_turn_reports_it(alice, page):
    own_thread = thread(alice)
    turn(own_thread, "A question", "An answer", recall_note="slow")

    assert "Recall timed out; answered without memory" in page.get(f"/t/{own_thread.id}").content.decode()
    assert "Regenerate with memory" in page.get(f"/t/{own_thread.id}").content.decode()


def test_only_an_answer_after_a_slow_recall_offers_to_regenerate_with_memory(alice, page):
    own_thread = thread(alice)
    turn(own_thread, "A question", "An answer", recall_note="words")

    html = page.get(f"/t/{own_thread.id}").content.decode()
    assert "recalled by keyword only" in html
    assert "Regenerate with memory" not in html


def test_an_api_key_is_stored_encrypted(alice, settings):
    endpoint.save(base_url="http://127.0.0.1:1/v1", api_key="sk-very-secret", model="m")

    assert b"sk-very-secret" not in bytes(Endpoint.objects.get().encrypted_key)
    assert endpoint.current().api_key == "sk-very-secret"
    assert "sk-very-secret" not in repr(endpoint.current())
    settings.SECRET_KEY = "another"
    assert endpoint.current().api_key == ""


def test_the_page_counts_people_who_can_recall_it(alice, page):
    endpoint.save(base_url="http://127.0.0.1:1/v1", api_key="", model="m")
    own_thread = thread(alice)
    assert "Visible only to you" in page.get(f"/t/{own_thread.id}").content.decode()

    Thread.objects.filter(id=own_thread.id).update(space=access.team_space())
    PersonFactory()
    assert "Visible to 2 people" in page.get(f"/t/{own_thread.id}").content.decode()

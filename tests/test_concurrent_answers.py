"""A person has a limited number of running answers; further messages are queued."""

from __future__ import annotations

import uuid

import pytest

from chat import services
from chat.errors import ConflictError, InvalidMessageError
from chat.models import Turn
from chat.realtime import frames
from chat.turns.posting import MAX_QUEUED
from memory.spaces import access
from tests.factories import PersonFactory, ago, thread, turn

pytestmark = pytest.mark.django_db
RUNNING, QUEUED = Turn.State.RECALLING, Turn.State.QUEUED


@pytest.fixture(autouse=True)
def two_at_once(settings):
    chat = settings.CATO.chat.model_copy(update={"concurrent_answers": 2})
    settings.CATO = settings.CATO.model_copy(update={"chat": chat})


def post(person, message: str = "A question") -> Turn:
    return services.create_thread_with_message(person.id, message=message, client_key=uuid.uuid4()).turn


def finish(one: Turn) -> list[uuid.UUID]:
    """Finish the answer; return the turns that start instead."""
    Turn.objects.filter(id=one.id).update(state=Turn.State.COMPLETE, answer="An answer")
    return services.start_queued_after_answer(one.thread_id, one.author_id)


def state(one: Turn) -> str:
    return Turn.objects.get(id=one.id).state


def test_a_sixth_message_of_a_thread_is_not_queued(person):
    busy = thread(person)
    turn(busy, answer="", state=RUNNING, heartbeat_at=ago(seconds=0))

    def post_to_busy() -> Turn:
        return services.post_message(busy.id, author_id=person.id, message="And?", client_key=uuid.uuid4()).turn

    assert {post_to_busy().state for _ in range(MAX_QUEUED)} == {QUEUED}
    with pytest.raises(InvalidMessageError, match="5 messages are queued"):
        post_to_busy()
    assert post(person).state == RUNNING, "each thread has its own queue"


def test_messages_above_the_limit_are_queued_in_order_per_person(person):
    turns = [post(person, f"Question {n}") for n in range(4)]
    assert [one.state for one in turns] == [RUNNING, RUNNING, QUEUED, QUEUED]
    assert post(PersonFactory()).state == RUNNING

    assert finish(turns[1]) == [turns[2].id]
    assert [state(one) for one in turns[2:]] == [RUNNING, QUEUED]
    assert finish(turns[0]) == [turns[3].id]


def test_the_page_explains_what_a_queued_message_waits_for(person):
    turns = [post(person) for _ in range(3)]
    assert f"{person.name} already has 2 answers in progress" in frames.turn(turns[2].id).html
    behind = services.post_message(
        turns[0].thread_id, author_id=person.id, message="And?", client_key=uuid.uuid4()
    ).turn
    assert "Queued until the previous answer ends" in frames.turn(behind.id).html


def test_a_finished_answer_starts_the_next_turn_of_its_thread_by_any_author(person):
    other = PersonFactory()
    shared = thread(person, space=access.team_space())
    first = services.post_message(shared.id, author_id=person.id, message="One", client_key=uuid.uuid4()).turn
    second = services.post_message(shared.id, author_id=other.id, message="Two", client_key=uuid.uuid4()).turn
    assert (first.state, second.state) == (RUNNING, QUEUED)
    post(person)
    waiting = post(person)

    assert finish(first) == [second.id, waiting.id]


def test_a_finished_answer_starts_no_messages_of_others_in_other_threads(person):
    first = post(person)
    turn(thread(PersonFactory()), answer="", state=QUEUED)
    assert finish(first) == []


def test_a_queue_whose_process_died_starts_within_the_limit(person):
    turns = [post(person) for _ in range(4)]
    assert services.start_all_queued() == []
    Turn.objects.filter(id__in=[one.id for one in turns[:2]]).update(state=Turn.State.INTERRUPTED)
    assert set(services.start_all_queued()) == {turns[2].id, turns[3].id}


def test_retrying_and_regenerating_above_the_limit_are_refused(person):
    failed = turn(thread(person), answer="", state=Turn.State.FAILED)
    completed = turn(thread(person))
    post(person), post(person)
    for change in (
        lambda: services.retry_turn(failed),
        lambda: services.resume_turn(failed),
        lambda: services.regenerate(completed, person_id=person.id, client_key=uuid.uuid4()),
        lambda: services.edit_message(completed, person_id=person.id, message="Other", client_key=uuid.uuid4()),
    ):
        with pytest.raises(ConflictError, match="2 answers of yours are in progress"):
            change()
    assert (state(failed), state(completed)) == (Turn.State.FAILED, Turn.State.COMPLETE)


def test_answers_of_a_dead_process_do_not_count(person):
    turns = [post(person) for _ in range(2)]
    assert post(person).state == QUEUED
    Turn.objects.filter(id=turns[0].id).update(heartbeat_at=ago(seconds=16))
    assert post(person).state == RUNNING


def test_a_message_waits_while_its_thread_is_deleted_and_is_answered_after_the_undo(person):
    first, _second, waiting = (post(person, f"Question {n}") for n in range(3))
    services.delete_thread(waiting.thread)
    assert finish(first) == services.start_all_queued() == []

    assert services.restore_thread(waiting.thread)
    assert services.start_all_queued() == [waiting.id]

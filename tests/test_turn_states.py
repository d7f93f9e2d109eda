"""What can be done with a turn in each of its states."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from chat import services
from chat.answers.persistence import complete_turn
from chat.answers.stream import AnswerStream
from chat.errors import ConflictError, InvalidMessageError, PermissionDeniedError, ThreadBusyError
from chat.models import Attachment, Thread, Turn
from chat.realtime import frames
from chat.rows.turns import TurnDetails, turn_row
from chat.threads.reader_marks import ensure_marker, is_unread, with_marks
from chat.turns import queue, stopping
from memory.api import InvalidInputError
from memory.models import Membership, Space
from memory.spaces import access
from tests.factories import PersonFactory, ago, answer_job, group, image_of, signed_in, thread, turn

pytestmark = pytest.mark.django_db
State = Turn.State
ENDED_EARLY = {State.STOPPED, State.INTERRUPTED, State.FAILED}
ENDED = {State.COMPLETE, *ENDED_EARLY}
RUNNING = {State.RECALLING, State.ANSWERING, State.WAITING}


def key() -> uuid.UUID:
    return uuid.uuid4()


ACTIONS: dict[str, tuple[Callable[[Turn], object], set[State]]] = {
    "stop": (lambda one: services.request_stop(one, by=one.author_id), RUNNING),
    "withdraw": (lambda one: services.withdraw_message(one, by=one.author_id) or True, {State.QUEUED}),
    "retry": (services.retry_turn, ENDED_EARLY),
    "resume": (services.resume_turn, ENDED_EARLY),
    "edit": (
        lambda one: services.edit_message(one, person_id=one.author_id, message="Another?", client_key=key()),
        ENDED,
    ),
    "regenerate": (lambda one: services.regenerate(one, person_id=one.author_id, client_key=key()), ENDED),
    "switch to": (lambda one: services.switch_branch(one, person_id=one.author_id), ENDED),
    "move": (lambda one: services.move_thread(one.thread, to=access.team_space(), by=one.author_id) == 0, ENDED),
    "delete": (lambda one: services.delete_last_turns(one.thread, 1, by=one.author_id), ENDED),
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("action", ACTIONS)
def test_the_state_of_a_turn_decides_what_can_be_done(person, action, state):
    one = turn(thread(person), answer="" if state == State.QUEUED else "Half an ans", state=state)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    act, allowed = ACTIONS[action]
    try:
        is_done = bool(act(one))
    except ConflictError:
        is_done = False
        assert Turn.objects.get(id=one.id).state == state
    assert is_done == (state in allowed)


def test_the_whole_thread_waits_for_a_running_answer(person):
    done = turn(thread(person), answer="Half", state=State.STOPPED)
    running = turn(done.thread, answer="", state=State.RECALLING, parent=done)
    Thread.objects.filter(id=done.thread_id).update(head=running)
    for act in (
        lambda: services.retry_turn(done),
        lambda: services.resume_turn(done),
        lambda: services.switch_branch(done, person_id=person.id),
        lambda: services.regenerate(done, person_id=person.id, client_key=key()),
        lambda: services.delete_thread(done.thread),
    ):
        with pytest.raises(ThreadBusyError):
            act()
    done.thread.refresh_from_db()
    assert done.thread.deleted_at is None
    Turn.objects.filter(id=running.id).update(state=State.COMPLETE)
    assert services.retry_turn(done).state == State.RECALLING


def test_a_retry_discards_the_partial_answer_and_a_resumed_answer_keeps_it(person):
    fields = {
        "answer": "Half", "reasoning": "Because", "error": "Timeout", "error_code": "timeout", "state": State.STOPPED,
        "attempt": 2, "revision": 7, "stop_requested": True, "completed_at": ago(hours=1), "heartbeat_at": ago(hours=1),
        "endpoint_reason": {"message": "No."},
    }  # fmt: skip
    retried = services.retry_turn(turn(thread(person), **fields))
    resumed = services.resume_turn(turn(thread(person), **fields))
    assert (retried.answer, retried.reasoning) == ("", "")
    assert (resumed.answer, resumed.reasoning) == ("Half", "Because")
    for one in (retried, resumed):
        assert (one.attempt, one.revision, one.stop_requested) == (3, 8, False)
        assert (one.error, one.error_code, one.endpoint_reason, one.completed_at) == ("", "", {}, None)
        assert one.heartbeat_at > ago(minutes=1)


def test_a_message_above_a_withdrawn_one_becomes_the_head(person):
    answered = turn(thread(person))
    first = turn(answered.thread, answer="", state=State.QUEUED, parent=answered)
    last = turn(answered.thread, answer="", state=State.QUEUED, parent=first)
    Thread.objects.filter(id=answered.thread_id).update(head=last)

    services.withdraw_message(first, by=person.id)
    last.refresh_from_db()
    answered.thread.refresh_from_db()
    assert (last.parent_id, answered.thread.head_id) == (answered.id, last.id)

    services.withdraw_message(last, by=person.id)
    answered.thread.refresh_from_db()
    assert answered.thread.head_id == answered.id


def test_a_message_is_withdrawn_by_its_author_alone(person):
    author, reader = PersonFactory(), PersonFactory()
    queued = turn(thread(person, space=access.team_space()), answer="", state=State.QUEUED, author=author)
    for other in (person, reader):
        with pytest.raises(PermissionDeniedError):
            services.withdraw_message(queued, by=other.id)
    services.withdraw_message(queued, by=author.id)
    assert not Turn.objects.exists()


def test_an_interrupted_answer_voids_the_attempt_of_its_process(person):
    fields = {"state": State.ANSWERING, "attempt": 2, "revision": 7}
    stale = turn(thread(person), answer="Half", heartbeat_at=ago(seconds=16), **fields)
    alive = turn(thread(person), answer="Half", heartbeat_at=ago(seconds=14), **fields)
    done = turn(thread(person), answer="All", heartbeat_at=ago(seconds=16), state=State.COMPLETE)

    assert services.interrupt_stale_answers() == [stale.id]

    for one in (stale, alive, done):
        one.refresh_from_db()
    assert (stale.state, stale.attempt, stale.revision) == (State.INTERRUPTED, 3, 8)
    assert stale.completed_at > ago(minutes=1)
    assert (alive.state, done.state) == (State.ANSWERING, State.COMPLETE)


def test_only_the_requested_turn_is_restarted(person):
    failed = turn(thread(person), answer="Half", state=State.FAILED)
    complete = turn(failed.thread, answer="Whole", state=State.COMPLETE, parent=failed)
    with pytest.raises(ConflictError):
        services.retry_turn(complete)
    assert services.retry_turn(failed).state == State.RECALLING


def test_an_answer_is_resumed_only_if_it_has_text_and_room_for_more(person, settings):
    empty = turn(thread(person), answer=" ", state=State.INTERRUPTED)
    full = turn(thread(person), answer="x" * settings.CATO.chat.max_answer_chars, state=State.INTERRUPTED)
    for one in (empty, full):
        with pytest.raises(ConflictError):
            services.resume_turn(one)
        assert services.retry_turn(one).answer == ""


def test_a_client_key_creates_one_thread_in_the_given_space(person):
    client_key = key()
    posted, again = (
        services.create_thread_with_message(
            person.id, message="Where is the oar?", client_key=client_key, space=access.team_space()
        )
        for _ in range(2)
    )
    assert (posted.is_new, again.is_new) == (True, False)
    assert again.turn.id == posted.turn.id
    assert posted.turn.thread.space_id == access.team_space().id


def test_an_answer_that_ended_or_wrote_a_heartbeat_meanwhile_is_not_interrupted(person):
    stale = turn(thread(person), answer="Half", heartbeat_at=ago(seconds=16), state=State.ANSWERING)
    alive = turn(thread(person), answer="Half", heartbeat_at=ago(seconds=1), state=State.ANSWERING)
    done = turn(thread(person), answer="All", heartbeat_at=ago(seconds=16), state=State.COMPLETE)
    assert not stopping._interrupt(alive.id)
    assert not stopping._interrupt(done.id)
    assert list(Turn.objects.filter(state=State.INTERRUPTED)) == []
    assert stopping._interrupt(stale.id)


def test_a_turn_names_who_stopped_its_answer_first_until_it_is_retried(person):
    reader, late = PersonFactory(name="Jana Köhler"), PersonFactory(name="Lin Mei")
    running = turn(thread(person, space=access.team_space()), answer="Half", state=State.ANSWERING)
    assert services.request_stop(running, by=reader.id)
    assert services.request_stop(running, by=late.id)

    stream = AnswerStream(answer_job(running))
    ended = complete_turn(stream.job, stream.build_outcome(State.STOPPED), 3, recalled_ids=[])
    assert ended is not None
    assert turn_row(ended.turn, TurnDetails()).note == "Stopped by Jana Köhler"
    assert "Stopped by Jana Köhler" in frames.turn(running.id).html

    services.retry_turn(running)
    assert Turn.objects.get(id=running.id).stopped_by is None


def test_an_answer_without_a_message_is_not_called_forgotten(person):
    alone = turn(thread(person), message="", answer="Welcome!", state=State.COMPLETE)

    assert not turn_row(alone, TurnDetails()).is_text_deleted
    alone.answer = ""
    assert turn_row(alone, TurnDetails()).is_text_deleted


def test_only_the_chosen_answer_is_stopped(person):
    chosen, other = (turn(thread(person), answer="Half", state=State.ANSWERING) for _ in range(2))
    assert services.request_stop(chosen, by=person.id)
    assert list(Turn.objects.filter(stop_requested=True)) == [chosen]
    assert other.thread_id != chosen.thread_id


def test_only_the_chosen_message_is_withdrawn_with_its_images(person):
    other = turn(thread(person))
    Thread.objects.filter(id=other.thread_id).update(head=other)
    first = turn(thread(person), answer="", state=State.QUEUED)
    last = turn(first.thread, answer="", state=State.QUEUED, parent=first)
    last.attachments.add(image_of(person))
    Thread.objects.filter(id=first.thread_id).update(head=last)

    services.withdraw_message(last, by=person.id)

    assert list(first.thread.turns.all()) == [first]
    assert not Attachment.objects.exists()
    other.thread.refresh_from_db()
    assert other.thread.head_id == other.id


def test_an_empty_or_too_long_message_is_refused(person, settings):
    for message in ("", " \n\t ", "x" * (settings.CATO.chat.max_message_chars + 1)):
        with pytest.raises(InvalidMessageError):
            services.create_thread_with_message(person.id, message=message, client_key=key())
    assert not Thread.objects.exists()
    longest = "x" * settings.CATO.chat.max_message_chars
    assert services.create_thread_with_message(person.id, message=longest, client_key=key()).turn.message == longest


def test_a_first_message_sent_twice_creates_one_thread_per_author(person):
    def send(author) -> services.PostedTurn:
        return services.create_thread_with_message(author.id, message="Where is the key?", client_key=client_key)

    client_key = key()
    first, again, other = send(person), send(person), send(PersonFactory())
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again.turn == first.turn
    assert other.turn.thread_id != first.turn.thread_id


def test_a_key_that_was_used_within_a_thread_does_not_prevent_a_new_thread(person):
    client_key = key()
    within = services.post_message(
        turn(thread(person)).thread_id, author_id=person.id, message="And the oar?", client_key=client_key
    )
    new = services.create_thread_with_message(person.id, message="Where is the key?", client_key=client_key)
    assert new.is_new
    assert new.turn.thread_id != within.turn.thread_id


def test_a_posted_message_becomes_the_head_of_its_thread_and_is_unread_for_others(person):
    author, answered = PersonFactory(), turn(thread(person, space=access.team_space()))
    ensure_marker(answered.thread, person.id)
    shared = answered.thread
    Thread.objects.filter(id=shared.id).update(head=answered, last_message_at=ago(hours=1))

    one = services.post_message(shared.id, author_id=author.id, message="And the oar?", client_key=key()).turn

    shared.refresh_from_db()
    assert (one.parent_id, one.position, shared.head_id) == (answered.id, 1, one.id)
    assert shared.last_message_at > ago(minutes=1)
    assert is_unread(with_marks(Thread.objects.all(), person.id).get(), person.id)
    assert not is_unread(with_marks(Thread.objects.all(), author.id).get(), author.id)


def test_a_message_sent_twice_to_a_thread_is_one_turn(person):
    talk, client_key = thread(person), key()
    first, again = (
        services.post_message(talk.id, author_id=person.id, message="And the oar?", client_key=client_key)
        for _ in range(2)
    )
    assert (first.is_new, again.is_new) == (True, False)
    assert again.turn == first.turn
    assert talk.turns.count() == 1


def test_a_queued_message_waits_for_the_running_answer_of_its_thread(person):
    running = turn(thread(person), answer="Half", state=State.ANSWERING)
    queued = turn(running.thread, answer="", state=State.QUEUED, revision=2, heartbeat_at=ago(hours=1))
    assert queue.start_next_queued(running.thread_id) is None
    assert services.start_queued_after_answer(running.thread_id, person.id) == []

    Turn.objects.filter(id=running.id).update(state=State.COMPLETE)
    assert queue.start_next_queued(running.thread_id) == queued
    queued.refresh_from_db()
    assert (queued.state, queued.revision) == (State.RECALLING, 3)
    assert queued.heartbeat_at > ago(minutes=1)


def test_a_turn_withdrawn_at_the_same_time_starts_no_turn_whose_author_is_not_locked(person, monkeypatch):
    withdrawn = turn(thread(person), answer="", state=State.QUEUED)
    next_one = turn(withdrawn.thread, answer="", state=State.QUEUED, author=PersonFactory())

    def withdraw_while_waiting(person_id: uuid.UUID) -> None:
        assert person_id == person.id
        services.withdraw_message(withdrawn, by=person.id)

    with monkeypatch.context() as patch:
        patch.setattr(queue, "lock_person", withdraw_while_waiting)
        assert queue.start_next_queued(withdrawn.thread_id) is None
    assert queue.start_next_queued(withdrawn.thread_id) == next_one


def test_the_first_queued_turn_of_each_idle_thread_starts(person):
    running = turn(thread(PersonFactory()), answer="Half", state=State.ANSWERING, heartbeat_at=ago(seconds=1))
    turn(running.thread, answer="", state=State.QUEUED)
    first, other = (turn(thread(PersonFactory()), answer="", state=State.QUEUED) for _ in range(2))
    second = turn(first.thread, answer="", state=State.QUEUED)
    turn(thread(person))

    assert set(services.start_all_queued()) == {first.id, other.id}
    second.refresh_from_db()
    assert second.state == State.QUEUED


CHANGES_OF_STATE: dict[str, tuple[Callable[[Turn], object], State]] = {
    "retry": (services.retry_turn, State.FAILED),
    "start": (lambda one: queue.start_next_queued(one.thread_id), State.QUEUED),
    "interrupt": (lambda one: services.interrupt_stale_answers(), State.ANSWERING),
    "post": (
        lambda one: services.post_message(one.thread_id, author_id=one.author_id, message="And?", client_key=key()),
        State.COMPLETE,
    ),
}


@pytest.mark.parametrize("change", CHANGES_OF_STATE)
def test_the_readers_of_the_thread_are_notified_of(person, notified_people, change):
    act, state = CHANGES_OF_STATE[change]
    reader = PersonFactory()
    one = turn(thread(person, space=group("Crew", person, reader)), answer="", state=state, heartbeat_at=ago(minutes=1))
    assert notified_people(lambda: act(one)) == {person.id, reader.id}


def test_a_turn_that_was_deleted_meanwhile_is_not_restarted(person):
    failed = turn(thread(person), answer="Half", state=State.FAILED)
    services.delete_last_turns(failed.thread, 1, by=person.id)
    for restart in (services.retry_turn, services.resume_turn):
        with pytest.raises(ConflictError):
            restart(failed)


@pytest.fixture
def of_former_member(person):
    """Return a turn whose author has left the group of this person's thread."""
    author = PersonFactory()
    crew = group("Crew", person, author)
    one = turn(thread(person, space=crew), answer="Half", author=author, state=State.STOPPED)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    Membership.objects.filter(person=author).delete()
    return one


@pytest.mark.parametrize(
    "act",
    [
        lambda one, by: services.retry_turn(one, by=by),
        lambda one, by: services.resume_turn(one, by=by),
        lambda one, by: services.regenerate(one, person_id=by, client_key=key()),
    ],
)
def test_an_answer_that_its_author_may_not_receive_is_not_begun(person, of_former_member, act):
    """It would end at once, and what there is of the answer would be hidden or lost."""
    with pytest.raises(ConflictError, match="can no longer read"):
        act(of_former_member, person.id)

    (one,) = of_former_member.thread.turns.all()
    assert (one.state, one.answer, one.is_on_active_branch) == (State.STOPPED, "Half", True)


def test_an_answer_on_another_branch_is_not_begun_again(person):
    one = turn(thread(person), answer="Half", state=State.STOPPED)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    services.regenerate(one, person_id=person.id, client_key=key())
    Turn.objects.exclude(id=one.id).update(state=State.COMPLETE)

    for act in (services.retry_turn, services.resume_turn):
        with pytest.raises(ConflictError, match="Another version"):
            act(one)


def test_nothing_is_answered_in_an_archived_project(person):
    project = group("Boat", person)
    one = turn(thread(person, space=project), answer="Half", state=State.STOPPED)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    Space.objects.filter(id=project.id).update(kind=Space.Kind.PROJECT, archived_at=ago())

    with pytest.raises(InvalidInputError):
        services.resume_turn(one)
    page = signed_in(person)
    refused = page.post(f"/t/{one.thread_id}/turns/{one.id}/edit", {"message": "A long text", "client_key": str(key())})
    assert (refused.status_code, "A long text" in refused.content.decode()) == (422, True)

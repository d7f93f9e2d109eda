"""Forks of threads, and withdrawing queued messages."""

from __future__ import annotations

import uuid

import pytest

from chat import access, services
from chat.answers.history import earlier_turns
from chat.answers.persistence import store_exchange
from chat.answers.recall import recall_for_turn
from chat.errors import ConflictError, PermissionDeniedError
from chat.models import Thread, ThreadSession, Turn
from chat.rows.turns import turn_rows
from chat.threads.locks import lock_thread
from memory.spaces import access as spaces
from tests.factories import PersonFactory, answer_job, image_of, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def original(memory, person):
    """Return three turns of a thread, the first two remembered."""
    of_person = thread(person, title="Keys")
    parent, turns = None, []
    for message, answer in (
        ("Where is the key to the greenhouse?", "Behind the clock."),
        ("And the key to the boathouse?", "Under the red buoy."),
        ("Who painted the buoy?", ""),
    ):
        one = turn(of_person, message, answer, state="complete" if answer else "stopped", parent=parent)
        if answer:
            store_exchange(one)
        one.refresh_from_db()
        turns.append(one)
        parent = one
    of_person.head = parent
    of_person.save()
    memory.index_pending()
    return turns


def texts_of(in_thread) -> list[tuple[str, str]]:
    return [(t.message, t.answer) for t in in_thread.turns.active_branch()]


def test_a_fork_contains_all_turns_up_to_its_origin_and_the_original_stays(original, person):
    before = texts_of(original[0].thread)
    fork = services.fork_thread(original[1], person_id=person.id)

    assert texts_of(fork) == before[:2]
    assert texts_of(original[0].thread) == before
    assert fork.title == "Keys"
    assert [t.created_at for t in fork.turns.active_branch()] == [t.created_at for t in original[:2]]


def test_a_long_branch_is_copied_with_few_statements(person, django_assert_max_num_queries):
    last = turn(thread(person))
    for _number in range(40):
        last = turn(last.thread, parent=last)
    image = image_of(person)
    last.attachments.add(image)
    with django_assert_max_num_queries(20):
        fork = services.fork_thread(last, person_id=person.id)

    copies = list(fork.turns.active_branch())
    assert len(copies) == 41
    assert fork.turns.get(pk=Thread.objects.get(pk=fork.pk).head_id).created_at == last.created_at
    assert [list(copy.attachments.all()) for copy in copies] == [[]] * 40 + [[image]]


def test_a_fork_says_which_tools_of_a_client_were_called(original, person):
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    Turn.objects.filter(id=original[1].id).update(tool_messages=[{"role": "assistant", "tool_calls": [call]}])
    original[1].refresh_from_db()
    fork = services.fork_thread(original[1], person_id=person.id)

    assert [row.tools_note for row in turn_rows(fork, fork.turns.all())] == ["", "Called weather"]


def test_a_fork_of_a_branch_follows_that_branch(original, person):
    services.edit_message(original[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())
    fork = services.fork_thread(original[2], person_id=person.id)

    assert [message for message, _ in texts_of(fork)] == [t.message for t in original]


def test_copies_in_a_fork_are_not_remembered_or_recalled_twice(original, person, memory):
    fork = services.fork_thread(original[1], person_id=person.id)
    assert len(memory.search("key boathouse", spaces=spaces.readable_space_ids(person.id)).results) == 2
    queued = services.post_message(
        fork.id, author_id=person.id, message="Where is the boathouse key?", client_key=uuid.uuid4()
    )

    assert not recall_for_turn(answer_job(queued.turn)).search_results.results


def test_forgetting_in_the_original_applies_to_its_forks(original, person, memory):
    fork = services.fork_thread(original[1], person_id=person.id)
    memory.forget([original[0].exchange_id], by=person.id)
    memory.index_pending()
    first, second = turn_rows(fork, fork.turns.active_branch().select_related("author"))

    assert (first.memory_state, second.memory_state) == ("forgotten", "remembered")


@pytest.mark.parametrize("is_turn_deleted", [False, True])
def test_forgetting_what_was_copied_while_it_was_answered_applies_to_the_copies(person, memory, is_turn_deleted):
    one = turn(thread(person), "Xian would do it for 31 euros.", "Noted:", state="answering")
    first = services.fork_thread(one, person_id=person.id)
    second = services.fork_thread(first.turns.get(), person_id=person.id)
    Turn.objects.filter(pk=one.pk).update(state="complete", answer="Noted: 31 euros.")
    one.refresh_from_db()
    store_exchange(one)
    one.refresh_from_db()
    later = [turn(fork, "And in May?") for fork in (first, second)]
    assert [len(earlier_turns(each)) for each in later] == [1, 1]

    if is_turn_deleted:
        services.delete_last_turns(one.thread, 1, by=person.id)
    else:
        memory.forget([one.exchange_id], by=person.id)

    assert [earlier_turns(each) for each in later] == [[], []]


@pytest.mark.parametrize("is_thread_deleted", [False, True])
def test_a_turn_that_is_deleted_while_it_is_forked_is_not_found(person, client, monkeypatch, is_thread_deleted):
    client.force_login(person)
    one = turn(thread(person))

    def lock_after_deletion(thread_id: uuid.UUID) -> Thread:
        Turn.objects.filter(thread_id=thread_id).delete()
        if is_thread_deleted:
            ThreadSession.objects.filter(thread_id=thread_id).delete()
            Thread.objects.filter(id=thread_id).delete()
        return lock_thread(thread_id)

    monkeypatch.setattr("chat.threads.fork.lock_thread", lock_after_deletion)

    assert client.post(f"/t/{one.thread_id}/turns/{one.id}/fork").status_code == 404
    assert not Thread.objects.exclude(id=one.thread_id).exists()


def test_deleting_a_fork_keeps_exchanges_of_the_original(original, person, memory):
    fork = services.fork_thread(original[1], person_id=person.id)
    services.delete_last_turns(fork, 2, by=person.id)
    services.delete_thread(fork)

    assert memory.memory_states([original[1].exchange_id]) == {original[1].exchange_id: "remembered"}
    assert memory.search("key boathouse", spaces=spaces.readable_space_ids(person.id)).results


def test_a_fork_of_a_shared_thread_is_private(person):
    bob = PersonFactory()
    shared = thread(person, space=spaces.team_space())
    fork = services.fork_thread(turn(shared, "For all of us"), person_id=bob.id)

    assert fork in access.readable_threads(bob.id)
    assert fork not in access.readable_threads(person.id)


def test_a_queued_message_can_be_withdrawn_and_later_ones_move_up(person):
    talk = thread(person)
    first = turn(talk, "First", "", state=Turn.State.ANSWERING)
    talk.head = first
    talk.save()
    second = services.post_message(talk.id, author_id=person.id, message="Second", client_key=uuid.uuid4()).turn
    third = services.post_message(talk.id, author_id=person.id, message="Third", client_key=uuid.uuid4()).turn
    services.withdraw_message(second, by=person.id)
    third.refresh_from_db()
    assert third.parent_id == first.id

    services.withdraw_message(third, by=person.id)
    talk.refresh_from_db()
    assert talk.head_id == first.id
    assert texts_of(talk) == [("First", "")]


def test_only_the_author_withdraws_a_message_and_only_while_it_is_queued(person):
    bob = PersonFactory()
    shared = thread(person, space=spaces.team_space())
    turn(shared, "First", "", state=Turn.State.ANSWERING)
    waiting = services.post_message(shared.id, author_id=person.id, message="Second", client_key=uuid.uuid4()).turn
    with pytest.raises(PermissionDeniedError, match="Only the author"):
        services.withdraw_message(waiting, by=bob.id)

    Turn.objects.filter(id=waiting.id).update(state=Turn.State.STOPPED)
    with pytest.raises(ConflictError, match="has already started"):
        services.withdraw_message(waiting, by=person.id)

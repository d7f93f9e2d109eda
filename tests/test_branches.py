"""Edited messages and regenerated answers create branches; memory contains the active one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import timedelta

import pytest
from django.utils import timezone

from chat import services
from chat.answers.history import earlier_turns
from chat.answers.persistence import store_exchange
from chat.answers.recall import recall_for_turn
from chat.errors import ConflictError, ThreadBusyError
from chat.models import Thread, Turn
from chat.realtime import frames, sync
from chat.rows.personal_recall import personal_rows
from memory.api import NotFoundError, signals
from memory.knowledge.sources import lock_with_statements
from memory.models import Exchange
from memory.retrieval.recall_log import log_recall, recalled_for
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces import access
from tests.factories import PersonFactory, answer_job, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def turns(memory, person):
    """Return three remembered turns of a thread, each the child of the previous one."""
    of_person = thread(person)
    parent, turns = None, []
    for message, answer in (
        ("Where is the key to the greenhouse?", "Behind the clock."),
        ("And the key to the boathouse?", "Under the red buoy."),
        ("Who painted the buoy?", "Ingrid did, in May."),
    ):
        one = turn(of_person, message, answer, state="complete", parent=parent)
        store_exchange(one)
        one.refresh_from_db()
        turns.append(one)
        parent = one
    of_person.head = parent
    of_person.save()
    memory.index_pending()
    return turns


def active_texts(one: Turn) -> list[str]:
    return [t.message for t in one.thread.turns.active_branch()]


def complete(one: Turn, answer: str) -> Turn:
    """Complete the turn and remember it, as the answer's task does."""
    Turn.objects.filter(pk=one.pk).update(state="complete", answer=answer)
    one.refresh_from_db()
    store_exchange(one)
    one.refresh_from_db()
    return one


def test_an_edited_message_replaces_the_first_version_and_all_later_turns(turns, person):
    _, second, _ = turns
    switched = services.edit_message(second, person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())

    assert active_texts(second) == ["Where is the key to the greenhouse?", "And to the sauna?"]
    assert switched.removed_ids == (turns[1].id, turns[2].id)
    assert switched.added_ids == (switched.posted.turn.id,)
    assert switched.posted.turn.parent_id == turns[0].id
    second.thread.refresh_from_db()
    assert second.thread.head_id == switched.posted.turn.id


def test_only_the_active_branch_is_recalled(memory, turns, person):
    readable = access.readable_space_ids(person.id)

    def found() -> set[str]:
        hits = memory.search("key buoy sauna", spaces=readable, count=50).results
        return {hit.exchange.user_message for hit in hits}

    before = found()
    assert len(before) == 3
    new = services.edit_message(
        turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn
    complete(new, "In the birch.")
    memory.index_pending()
    assert found() == {"Where is the key to the greenhouse?", "And to the sauna?"}

    services.switch_branch(turns[1], person_id=person.id)
    assert found() == before
    assert memory.memory_states([new.exchange_id]) == {new.exchange_id: "remembered"}


def test_all_exchanges_that_are_shown_or_hidden_are_locked_before_the_first_is_changed(turns, person, monkeypatch):
    new = services.edit_message(
        turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn
    complete(new, "In the birch.")
    locked: list[set[uuid.UUID]] = []

    def lock(exchange_ids: Iterable[uuid.UUID]) -> None:
        locked.append(set(exchange_ids))
        lock_with_statements(exchange_ids)

    monkeypatch.setattr("memory.api.lock_with_statements", lock)
    monkeypatch.setattr("memory.exchanges.lifecycle.lock_with_statements", lock)

    services.switch_branch(turns[1], person_id=person.id)
    assert locked[0] == {new.exchange_id, turns[1].exchange_id, turns[2].exchange_id} == set().union(*locked)
    services.delete_thread(new.thread)
    locked.clear()
    services.restore_thread(new.thread)
    assert locked[0] == {new.exchange_id, *(one.exchange_id for one in turns)} == set().union(*locked)


def test_switching_back_restores_the_branch_including_its_later_turns(turns, person):
    new = services.edit_message(
        turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn
    complete(new, "In the birch.")

    switched = services.switch_branch(turns[1], person_id=person.id)

    assert active_texts(new) == [t.message for t in turns]
    assert switched.removed_ids == (new.id,)
    assert switched.added_ids == (turns[1].id, turns[2].id)


def test_switching_continues_with_the_latest_versions_and_reports_only_what_changed(turns, person):
    first, second, third = turns
    elsewhere = turn(thread(person))
    Thread.objects.filter(id=elsewhere.thread_id).update(head=elsewhere)

    def edit(one: Turn) -> Turn:
        switched = services.edit_message(one, person_id=person.id, message="Another?", client_key=uuid.uuid4())
        assert switched.posted.is_new
        return complete(switched.posted.turn, "Sold.")

    later_third, other_second, active_second = edit(third), edit(second), edit(second)
    switched = services.switch_branch(second, person_id=person.id)

    assert not switched.posted.is_new
    assert switched.removed_ids == (active_second.id,)
    assert switched.added_ids == (second.id, later_third.id)
    assert set(first.thread.turns.active_branch()) == {first, second, later_third}
    heads = dict(Thread.objects.values_list("id", "head_id"))
    assert heads == {first.thread_id: later_third.id, elsewhere.thread_id: elsewhere.id}
    other_second.refresh_from_db()
    assert not other_second.is_on_active_branch


def test_a_regenerated_answer_keeps_the_message_and_its_author(turns, person):
    switched = services.regenerate(turns[2], person_id=person.id, client_key=uuid.uuid4())

    new = switched.posted.turn
    assert (new.message, new.author_id, new.state) == (turns[2].message, turns[2].author_id, "recalling")
    assert active_texts(new)[-1] == turns[2].message


def test_a_regenerated_answer_keeps_the_date_of_the_message_and_an_edited_message_gets_a_new_one(turns, person):
    asked_at = timezone.now() - timedelta(days=40)
    Turn.objects.filter(id=turns[2].id).update(created_at=asked_at)
    turns[2].refresh_from_db()

    again = services.regenerate(turns[2], person_id=person.id, client_key=uuid.uuid4()).posted.turn
    assert again.created_at == asked_at
    complete(again, "Ingrid, they say.")
    assert Exchange.objects.get(id=again.exchange_id).timestamp == asked_at
    edited = services.edit_message(again, person_id=person.id, message="Who else?", client_key=uuid.uuid4())
    assert edited.posted.turn.created_at > asked_at


def test_regenerating_leaves_the_citations_of_other_answers_as_they_are(turns, person, client):
    client.force_login(person)
    cited, elsewhere = turns[2], turn(thread(person), "Who was it?", "Ingrid [1].")
    log_recall(elsewhere.id, [hit(cited.exchange_id)])
    page, (panel,) = f"/t/{elsewhere.thread_id}", recalled_for([elsewhere.id], spaces=spaces_of(person)).values()
    before = client.get(page).content.decode()
    assert f"Source 1: {cited.thread.title}" in before

    again = services.regenerate(cited, person_id=person.id, client_key=uuid.uuid4()).posted.turn
    assert Exchange.objects.get(id=cited.exchange_id).is_inactive
    assert recalled_for([elsewhere.id], spaces=spaces_of(person)) == {elsewhere.id: panel}
    assert f"Source 1: {cited.thread.title}" in client.get(page).content.decode()
    # What the panel offers works: the link leads to the version that the thread shows.
    (item,) = personal_rows(elsewhere, person.id, is_administrator=False)
    assert client.get(item.url).url.endswith(f"#turn-{again.id}")
    assert client.post(item.feedback_url, {"kind": "pinned"}).status_code == 302
    assert client.get(item.forget_url).status_code == 200
    # A deleted thread is not cited any more, until it is restored.
    Turn.objects.filter(id=again.id).update(state="complete")
    services.delete_thread(cited.thread)
    assert client.get(item.url).status_code == 404
    assert "no longer available in this thread" in client.get(page).content.decode()
    assert services.restore_thread(cited.thread)
    assert f"Source 1: {cited.thread.title}" in client.get(page).content.decode()


def spaces_of(person) -> access.SpaceIds:
    return access.readable_space_ids(person.id)


def hit(exchange_id: uuid.UUID) -> Hit:
    view = ExchangeView.from_row(Exchange.objects.select_related("owner").get(id=exchange_id))
    return Hit(exchange=view, similarity=0.9, score=1.0, strategy="hybrid", explanation="Similar", is_below_gate=False)


def test_a_prompt_contains_only_its_own_branch(turns, person):
    new = services.edit_message(
        turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn

    assert [t.message for t in earlier_turns(new)] == ["Where is the key to the greenhouse?"]
    assert turns[1].exchange_id not in {r.exchange.id for r in recall_for_turn(answer_job(new)).search_results.results}


def test_earlier_turns_of_other_branches_are_not_offered(turns, person, client):
    services.edit_message(turns[0], person_id=person.id, message="Where is the ladder?", client_key=uuid.uuid4())
    client.force_login(person)
    assert "Load earlier turns" not in client.get(f"/t/{turns[0].thread_id}").content.decode()


def test_the_first_message_can_be_edited(turns, person):
    services.edit_message(turns[0], person_id=person.id, message="Where is the ladder?", client_key=uuid.uuid4())
    assert active_texts(turns[0]) == ["Where is the ladder?"]


def test_an_edit_sent_twice_creates_one_branch(turns, person):
    key = uuid.uuid4()
    first = services.edit_message(turns[1], person_id=person.id, message="And to the sauna?", client_key=key)
    second = services.edit_message(turns[1], person_id=person.id, message="And to the sauna?", client_key=key)

    assert second.posted.turn.id == first.posted.turn.id
    assert not second.posted.is_new
    assert second.removed_ids == ()


def test_branching_is_refused_while_an_answer_is_running(turns, person):
    services.regenerate(turns[2], person_id=person.id, client_key=uuid.uuid4())
    for act in (
        lambda: services.edit_message(turns[1], person_id=person.id, message="x", client_key=uuid.uuid4()),
        lambda: services.regenerate(turns[1], person_id=person.id, client_key=uuid.uuid4()),
        lambda: services.switch_branch(turns[2], person_id=person.id),
    ):
        with pytest.raises(ThreadBusyError, match="An answer is in progress"):
            act()


def test_pages_receive_the_removed_and_added_turns_and_the_version_count(turns, person):
    switched = services.edit_message(
        turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    )
    html = frames.branch_switched(turns[1].thread_id, switched.removed_ids, switched.added_ids).html

    assert html.count('hx-swap-oob="delete"') == 2
    assert "And to the sauna?" in html
    assert "2 of 2" not in html  # the running turn has no buttons yet
    complete(switched.posted.turn, "In the birch.")
    assert "2 of 2" in frames.turn(switched.posted.turn.id).html


def test_pages_are_told_of_the_memory_of_shown_versions_only(turns, person, monkeypatch):
    *_, last = turns
    services.edit_message(last, person_id=person.id, message="Who painted it?", client_key=uuid.uuid4())
    published = []
    monkeypatch.setattr("chat.receivers.publish", published.append)
    signals.exchanges_indexed.send(None, exchange_ids=[each.exchange_id for each in turns])

    assert [frame.turn_id for frame in published] == [each.id for each in turns[:-1]]


def test_a_reconnecting_page_removes_turns_of_inactive_branches(turns, person):
    have = {t.id: t.revision for t in turns}
    services.edit_message(turns[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())

    request = sync.parse_sync_request(json.dumps({"have": {str(k): v for k, v in have.items()}}))
    html, revisions = sync.missing_updates(person.id, turns[0].thread_id, request.revisions)
    assert f'id="turn-{turns[2].id}" hx-swap-oob="delete"' in html
    assert f'id="turn-{turns[0].id}" hx-swap-oob="delete"' not in html
    assert turns[2].id not in revisions


@pytest.fixture
def shared_turns(memory):
    """Return turns of Alice's team thread, by Alice, Bob and Alice, each remembered."""
    alice, bob = PersonFactory(name="Alice"), PersonFactory(name="Bob")
    of_alice = thread(alice, space=access.team_space())
    parent, turns = None, []
    for author, message in ((alice, "Where is the key?"), (bob, "And the boat?"), (alice, "And the oars?")):
        one = turn(of_alice, message, "In the shed.", author=author, parent=parent)
        store_exchange(one)
        one.refresh_from_db()
        turns.append(one)
        parent = one
    of_alice.head = parent
    of_alice.save()
    return alice, bob, turns


CHANGES = {
    "edit": lambda one, person: services.edit_message(
        one, person_id=person.id, message="Another?", client_key=uuid.uuid4()
    ),
    "regenerate": lambda one, person: services.regenerate(one, person_id=person.id, client_key=uuid.uuid4()),
    "switch": lambda one, person: services.switch_branch(one, person_id=person.id),
}


@pytest.mark.parametrize("address", ["edit", "regenerate", "switch", "retry", "resume"])
def test_readers_cannot_change_messages_of_others(shared_turns, address, client):
    _alice, _bob, turns = shared_turns
    reader = PersonFactory(name="Carla")
    client.force_login(reader)
    before = list(Turn.objects.order_by("position").values("id", "is_on_active_branch", "state"))
    for one in turns:
        path = f"/t/{one.thread_id}/turns/{one.id}/{address}"
        answer = client.post(path, {"message": "Another?", "client_key": str(uuid.uuid4())})
        assert answer.status_code == 403
        assert "You can fork the thread" in answer.content.decode()

    assert list(Turn.objects.order_by("position").values("id", "is_on_active_branch", "state")) == before
    assert not Exchange.objects.filter(is_inactive=True).exists()
    assert client.post(f"/t/{turns[0].thread_id}/turns/{turns[0].id}/fork").status_code == 302


@pytest.mark.parametrize("change", ["edit", "regenerate"])
def test_an_author_cannot_hide_later_messages_of_others(shared_turns, change):
    alice, bob, turns = shared_turns
    with pytest.raises(ConflictError, match="Fork the thread instead"):
        CHANGES[change](turns[1], bob)
    assert active_texts(turns[0]) == [t.message for t in turns]
    assert not Exchange.objects.filter(is_inactive=True).exists()

    CHANGES[change](turns[1], alice)  # the owner of the thread
    assert len(active_texts(turns[0])) == 2


def test_an_author_edits_the_last_message_and_switches_back(shared_turns):
    _alice, bob, turns = shared_turns
    last = turn(turns[0].thread, "And the sails?", "In the loft.", author=bob, parent=turns[2])
    edited = CHANGES["edit"](last, bob).posted.turn
    complete(edited, "Sold.")
    assert active_texts(last)[-1] == "Another?"
    CHANGES["switch"](last, bob)
    assert active_texts(last)[-1] == "And the sails?"


def test_only_the_owner_switches_to_a_version_that_hides_messages_of_others(shared_turns):
    alice, bob, turns = shared_turns
    other = CHANGES["edit"](turns[1], alice).posted.turn
    complete(other, "Here.")
    # Carla continues in Alice's new version.
    carla = PersonFactory(name="Carla")
    complete(turn(turns[0].thread, "Thanks", "", author=carla, parent=other, state="recalling"), "Welcome.")
    with pytest.raises(ConflictError, match="Fork the thread instead"):
        CHANGES["switch"](turns[1], bob)
    CHANGES["switch"](turns[1], alice)
    assert active_texts(turns[0]) == [t.message for t in turns]


# A change that another request makes before the thread is locked


@pytest.mark.parametrize("change", ["edit", "regenerate"])
def test_a_message_that_was_forgotten_everywhere_meanwhile_does_not_come_back(turns, person, change):
    read_before = Turn.objects.get(pk=turns[1].pk)
    services.forget_everywhere(person.id, turns[1].exchange_id, is_administrator=False, with_answers=False)

    with pytest.raises(ConflictError, match="forgotten everywhere"):
        CHANGES[change](read_before, person)
    assert not Turn.objects.filter(message="And the key to the boathouse?").exists()


@pytest.mark.parametrize("change", CHANGES)
def test_a_turn_that_was_deleted_meanwhile_does_not_come_back(turns, person, change):
    read_before = Turn.objects.get(pk=turns[2].pk)
    services.delete_last_turns(turns[2].thread, 1, by=person.id)

    with pytest.raises(NotFoundError):
        CHANGES[change](read_before, person)
    assert active_texts(turns[0]) == [turns[0].message, turns[1].message]
    assert Turn.objects.count() == 2


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_in_a_thread_that_was_moved_out_of_reach_meanwhile(shared_turns, change):
    alice, bob, turns = shared_turns
    Thread.objects.update(space=access.personal_space(alice.id))

    with pytest.raises(NotFoundError):
        CHANGES[change](turns[1], bob)
    assert Turn.objects.count() == 3

"""A message said differently, an answer made again, and the way back; memory holds what stands."""

from __future__ import annotations

import json
import uuid

import pytest

from chat import services
from chat.answers.persistence import recall_for_turn, store_exchange
from chat.errors import ConflictError, ThreadBusyError
from chat.models import Turn
from chat.realtime import frames, sync
from memory.models import Exchange
from memory.spaces import access
from tests.factories import PersonFactory, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(memory, person):
    """A thread of three remembered turns, each the child of the one before."""
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


def standing(one: Turn) -> list[str]:
    return [t.message for t in one.thread.turns.active_branch()]


def finished(one: Turn, answer: str) -> Turn:
    """The turn answered and remembered, as the reply does it."""
    Turn.objects.filter(pk=one.pk).update(state="complete", answer=answer)
    one.refresh_from_db()
    store_exchange(one)
    one.refresh_from_db()
    return one


def test_an_edited_message_takes_the_place_of_the_first_and_of_all_that_followed(told, person):
    _, second, _ = told
    switched = services.edit_message(second, person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())

    assert standing(second) == ["Where is the key to the greenhouse?", "And to the sauna?"]
    assert switched.removed_ids == (told[1].id, told[2].id)
    assert switched.added_ids == (switched.posted.turn.id,)
    assert switched.posted.turn.parent_id == told[0].id
    second.thread.refresh_from_db()
    assert second.thread.head_id == switched.posted.turn.id


def test_memory_holds_the_branch_that_stands(memory, told, person):
    readable = access.readable_space_ids(person.id)

    def found() -> set[str]:
        hits = memory.search("key buoy sauna", spaces=readable, count=50).results
        return {hit.exchange.user_message for hit in hits}

    before = found()
    assert len(before) == 3
    new = services.edit_message(
        told[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn
    finished(new, "In the birch.")
    memory.index_pending()
    assert found() == {"Where is the key to the greenhouse?", "And to the sauna?"}

    services.switch_branch(told[1], person_id=person.id)
    assert found() == before
    assert memory.memory_states([new.exchange_id]) == {new.exchange_id: "remembered"}


def test_the_way_back_leads_to_where_one_was(told, person):
    new = services.edit_message(
        told[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn
    finished(new, "In the birch.")

    switched = services.switch_branch(told[1], person_id=person.id)

    assert standing(new) == [t.message for t in told]
    assert switched.removed_ids == (new.id,)
    assert switched.added_ids == (told[1].id, told[2].id)


def test_an_answer_made_again_has_the_same_message_and_author(told, person):
    switched = services.regenerate(told[2], person_id=person.id, client_key=uuid.uuid4())

    new = switched.posted.turn
    assert (new.message, new.author_id, new.state) == (told[2].message, told[2].author_id, "recalling")
    assert standing(new)[-1] == told[2].message


def test_the_prompt_of_a_branch_knows_nothing_of_the_other(told, person):
    new = services.edit_message(
        told[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4()
    ).posted.turn

    from chat.answers.persistence import _turns_before

    assert [t.message for t in _turns_before(new)] == ["Where is the key to the greenhouse?"]
    assert told[1].exchange_id not in {r.exchange.id for r in recall_for_turn(new.id).results}


def test_a_page_offers_nothing_earlier_where_only_another_branch_begins_earlier(told, person, client):
    services.edit_message(told[0], person_id=person.id, message="Where is the ladder?", client_key=uuid.uuid4())
    client.force_login(person)
    assert "Load earlier turns" not in client.get(f"/t/{told[0].thread_id}").content.decode()


def test_the_first_message_can_be_edited_too(told, person):
    services.edit_message(told[0], person_id=person.id, message="Where is the ladder?", client_key=uuid.uuid4())
    assert standing(told[0]) == ["Where is the ladder?"]


def test_the_same_edit_sent_twice_makes_one_branch(told, person):
    key = uuid.uuid4()
    first = services.edit_message(told[1], person_id=person.id, message="And to the sauna?", client_key=key)
    again = services.edit_message(told[1], person_id=person.id, message="And to the sauna?", client_key=key)

    assert again.posted.turn.id == first.posted.turn.id
    assert not again.posted.is_new
    assert again.removed_ids == ()


def test_nothing_branches_while_an_answer_is_written(told, person):
    services.regenerate(told[2], person_id=person.id, client_key=uuid.uuid4())
    for act in (
        lambda: services.edit_message(told[1], person_id=person.id, message="x", client_key=uuid.uuid4()),
        lambda: services.regenerate(told[1], person_id=person.id, client_key=uuid.uuid4()),
        lambda: services.switch_branch(told[2], person_id=person.id),
    ):
        with pytest.raises(ThreadBusyError, match="An answer is in progress"):
            act()


def test_pages_are_told_which_turns_go_and_which_come_and_how_many_there_are(told, person):
    switched = services.edit_message(told[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())
    html = frames.branch_switched(told[1].thread_id, switched.removed_ids, switched.added_ids).html

    assert html.count('hx-swap-oob="delete"') == 2
    assert "And to the sauna?" in html
    assert "2 of 2" not in html  # it is still being answered and has no tools yet
    finished(switched.posted.turn, "In the birch.")
    assert "2 of 2" in frames.turn(switched.posted.turn.id).html


def test_a_page_that_comes_back_is_told_what_no_longer_stands(told, person):
    have = {t.id: t.revision for t in told}
    services.edit_message(told[1], person_id=person.id, message="And to the sauna?", client_key=uuid.uuid4())

    told_by_page = sync.parse_sync_request(json.dumps({"have": {str(k): v for k, v in have.items()}}))
    html, revisions = sync.missing_updates(person.id, told[0].thread_id, told_by_page.have)
    assert f'id="turn-{told[2].id}" hx-swap-oob="delete"' in html
    assert f'id="turn-{told[0].id}" hx-swap-oob="delete"' not in html
    assert told[2].id not in revisions


@pytest.fixture
def shared(memory):
    """A team thread of Alice's: her message, then Bob's, then hers again, each with its exchange."""
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


@pytest.mark.parametrize("address", ["edit", "again", "choose", "retry", "resume"])
def test_other_readers_change_no_message_they_did_not_write(shared, address, client):
    _alice, _bob, turns = shared
    reader = PersonFactory(name="Carla")
    client.force_login(reader)
    before = list(Turn.objects.order_by("position").values("id", "is_on_active_branch", "state"))
    for one in turns:
        path = f"/t/{one.thread_id}/turns/{one.id}/{address}"
        answer = client.post(path, {"message": "Another?", "client_key": str(uuid.uuid4())})
        assert answer.status_code == 403
        assert "You can fork the thread" in answer.content.decode()

    assert list(Turn.objects.order_by("position").values("id", "is_on_active_branch", "state")) == before
    assert not Exchange.objects.filter(is_hidden=True).exists()
    assert client.post(f"/t/{turns[0].thread_id}/turns/{turns[0].id}/fork").status_code == 302


@pytest.mark.parametrize("change", ["edit", "regenerate"])
def test_an_author_hides_no_message_that_somebody_else_wrote_after_it(shared, change):
    alice, bob, turns = shared
    with pytest.raises(ConflictError, match="Fork the thread instead"):
        CHANGES[change](turns[1], bob)
    assert standing(turns[0]) == [t.message for t in turns]
    assert not Exchange.objects.filter(is_hidden=True).exists()

    CHANGES[change](turns[1], alice)  # the owner of the thread
    assert len(standing(turns[0])) == 2


def test_an_author_edits_the_last_message_and_switches_back(shared):
    _alice, bob, turns = shared
    last = turn(turns[0].thread, "And the sails?", "In the loft.", author=bob, parent=turns[2])
    edited = CHANGES["edit"](last, bob).posted.turn
    finished(edited, "Sold.")
    assert standing(last)[-1] == "Another?"
    CHANGES["switch"](last, bob)
    assert standing(last)[-1] == "And the sails?"


def test_nobody_but_the_owner_switches_to_a_version_without_what_others_wrote(shared):
    alice, bob, turns = shared
    other = CHANGES["edit"](turns[1], alice).posted.turn
    finished(other, "Here.")
    # Carla goes on in the version that Alice made.
    carla = PersonFactory(name="Carla")
    finished(turn(turns[0].thread, "Thanks", "", author=carla, parent=other, state="recalling"), "Welcome.")
    with pytest.raises(ConflictError, match="Fork the thread instead"):
        CHANGES["switch"](turns[1], bob)
    CHANGES["switch"](turns[1], alice)
    assert standing(turns[0]) == [t.message for t in turns]

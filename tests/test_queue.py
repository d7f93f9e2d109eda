"""The queued messages of a thread: moved up, edited and withdrawn by their authors."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse

from chat import services
from chat.errors import ConflictError, PermissionDeniedError
from chat.models import Attachment, Thread, Turn
from chat.realtime.sync import missing_updates
from chat.turns import queue
from memory.spaces import access as spaces
from tests.factories import PersonFactory, image_of, signed_in, thread, turn

State = Turn.State


def order_of(talk) -> list[str]:
    return list(talk.turns.order_by("position").values_list("message", flat=True))


def post(talk, author, message: str, **options) -> Turn:
    posted = services.post_message(talk.id, author_id=author.id, message=message, client_key=uuid.uuid4(), **options)
    return posted.turn


@pytest.fixture
def busy(person):
    """Return a team thread with an answer in progress."""
    talk = thread(person, space=spaces.team_space())
    talk.head = turn(talk, "First", "", state=State.ANSWERING)
    talk.save()
    return talk


def test_a_message_moved_up_is_answered_first(busy, person):
    second, third, fourth = (post(busy, person, text) for text in ("Second", "Third", "Fourth"))
    moved = services.move_up(third, by=person.id)
    assert moved == [third.id, second.id, fourth.id]

    assert order_of(busy) == ["First", "Third", "Second", "Fourth"]
    turns = {row.id: row for row in busy.turns.all()}
    parents = [turns[id].parent_id for id in (third.id, second.id, fourth.id)]
    assert parents == [busy.head_id, third.id, second.id]
    assert (turns[third.id].revision, turns[second.id].revision, turns[fourth.id].revision) == (1, 1, 0)
    Turn.objects.filter(id=busy.head_id).update(state=State.COMPLETE)
    assert queue.start_next_queued(busy.id) == third


def test_the_last_message_moved_up_leaves_the_other_as_head(busy, person):
    second, third = post(busy, person, "Second"), post(busy, person, "Third")
    services.move_up(third, by=person.id)
    busy.refresh_from_db()

    assert busy.head_id == second.id
    post(busy, person, "Fourth")
    assert order_of(busy) == ["First", "Third", "Second", "Fourth"]


def test_a_message_is_not_moved_past_that_of_somebody_else(busy, person):
    bob = PersonFactory()
    post(busy, bob, "Second")
    third, fourth = post(busy, person, "Third"), post(busy, person, "Fourth")
    with pytest.raises(ConflictError, match="further up"):
        services.move_up(third, by=person.id)
    assert order_of(busy) == ["First", "Second", "Third", "Fourth"]

    services.move_up(fourth, by=person.id)
    with pytest.raises(ConflictError, match="further up"):
        services.move_up(fourth, by=person.id)
    assert order_of(busy) == ["First", "Second", "Fourth", "Third"]


def test_only_the_author_moves_a_message_and_only_while_it_is_queued(busy, person):
    bob = PersonFactory()
    post(busy, bob, "Second")
    third = post(busy, bob, "Third")
    with pytest.raises(PermissionDeniedError, match="Only the author"):
        services.move_up(third, by=person.id)
    with pytest.raises(PermissionDeniedError, match="Only the author"):
        services.withdraw_to_edit(third, by=person.id)

    Turn.objects.filter(id=third.id).update(state=State.STOPPED)
    with pytest.raises(ConflictError, match="has already started"):
        services.move_up(third, by=bob.id)


def test_a_turn_that_was_moved_up_meanwhile_starts(busy, person, monkeypatch):
    post(busy, person, "Second")
    third = post(busy, person, "Third")
    Turn.objects.filter(id=busy.head_id).update(state=State.COMPLETE)
    lock = queue.lock_person

    def move_while_waiting(person_id: uuid.UUID):
        services.move_up(third, by=person.id)
        return lock(person_id)

    monkeypatch.setattr(queue, "lock_person", move_while_waiting)
    assert queue.start_next_queued(busy.id) == third


def test_the_page_offers_only_what_its_reader_may_do(busy, person):
    bob = PersonFactory()
    client, bobs = signed_in(person), signed_in(bob)
    post(busy, bob, "Second")
    third, fourth = post(busy, person, "Third"), post(busy, person, "Fourth")
    address = reverse("thread", args=[busy.id])
    own, others = client.get(address).content.decode(), bobs.get(address).content.decode()

    assert [own.count(f"/turns/{row.id}/move-up") for row in (third, fourth)] == [0, 2]
    assert own.count("/edit-queued") == own.count("/withdraw") == 4
    assert others.count("/edit-queued") == others.count("/withdraw") == 2
    assert "/move-up" not in others


def test_without_script_an_edited_message_is_in_the_composer_with_its_files(busy, person):
    client = signed_in(person)
    attachment = image_of(person)
    message = "A long message. " * 200
    queued = post(busy, person, message, attachments=[attachment.id])
    page = client.post(reverse("edit_queued_turn", args=[busy.id, queued.id])).content.decode()

    assert message.strip() in page
    assert f'value="{attachment.id}"' in page
    assert order_of(busy) == ["First"]
    again = post(busy, person, "Shorter", attachments=[attachment.id])
    assert list(again.attachments.all()) == [attachment]


def test_a_withdrawn_message_takes_its_files_with_it(busy, person):
    client = signed_in(person)
    attachment = image_of(person)
    queued = post(busy, person, "Look", attachments=[attachment.id])
    page = client.post(reverse("withdraw_turn", args=[busy.id, queued.id]), follow=True)

    assert page.redirect_chain == [(reverse("thread", args=[busy.id]), 302)]
    assert not Attachment.objects.exists()


def test_a_withdrawn_first_message_takes_the_title_with_it(person, settings):
    for _number in range(settings.CATO.chat.concurrent_answers):
        services.create_thread_with_message(person.id, message="Elsewhere", client_key=uuid.uuid4())
    first = services.create_thread_with_message(person.id, message="The winch is broken", client_key=uuid.uuid4()).turn
    later = post(first.thread, person, "Who repairs it?")
    assert (first.state, first.thread.title) == (State.QUEUED, "The winch is broken")

    services.withdraw_message(later, by=person.id)
    assert Thread.objects.get(id=first.thread_id).title == "The winch is broken"
    services.withdraw_message(first, by=person.id)

    assert Thread.objects.get(id=first.thread_id).title == "New thread"


def test_a_page_that_was_offline_gets_a_message_it_lacks_in_its_place(busy, person):
    second = post(busy, person, "Second")
    known = {row.id: row.revision for row in busy.turns.order_by("position")}
    third = post(busy, person, "Third")
    services.move_up(third, by=person.id)
    html, _ = missing_updates(person.id, busy.id, known)

    assert f'id="turn-{second.id}" hx-swap-oob="delete"' in html
    assert html.index(f'data-turn="{third.id}"') < html.index(f'data-turn="{second.id}"')
    assert f'id="turn-{busy.head_id}" hx-swap-oob="delete"' not in html


def test_a_page_that_was_offline_gets_the_new_order_and_loses_withdrawn_messages(busy, person):
    second, third, fourth = (post(busy, person, text) for text in ("Second", "Third", "Fourth"))
    known = {row.id: row.revision for row in busy.turns.order_by("position")}
    services.move_up(third, by=person.id)
    services.withdraw_message(fourth, by=person.id)
    html, _ = missing_updates(person.id, busy.id, known)

    gone = [f'id="turn-{row.id}" hx-swap-oob="delete"' for row in (second, third, fourth)]
    assert all(element in html for element in gone)
    appended = [html.index(f'data-turn="{row.id}"') for row in (third, second)]
    assert max(map(html.index, gone)) < appended[0] < appended[1]
    assert f'data-turn="{busy.head_id}"' not in html

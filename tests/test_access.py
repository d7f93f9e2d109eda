"""Access to threads, images and exchanges, and when sockets and running answers lose it."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import pytest
from django.contrib.sessions.models import Session as LoginSession

from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.tokens import create_token
from chat import access, services
from chat.access import SocketIdentity
from chat.models import Thread
from memory.errors import NotFoundError
from memory.models import Exchange, Membership
from memory.spaces import access as spaces
from tests.factories import PersonFactory, ago, exchange, group, image_of, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(db) -> User:
    return PersonFactory(name="Bob")


@pytest.fixture
def talk(person, bob) -> Thread:
    """Return Bob's thread in a group of both."""
    return thread(bob, space=group("Crew", person, bob))


def socket_of(person: User, in_thread: Thread | None) -> SocketIdentity:
    key = signed_in(person).session.session_key
    return SocketIdentity(person.id, key, person.epoch, in_thread.id if in_thread else None)


def authorized(sockets: Collection[SocketIdentity]) -> set[SocketIdentity]:
    """Return the authorized sockets, which are the same one by one and all together."""
    allowed = access.authorize_sockets(sockets)
    assert allowed == {socket for socket in sockets if access.is_socket_authorized(socket)}
    return allowed


LOSSES = {
    "the account is deactivated": lambda person, talk: User.objects.filter(id=person.id).update(is_active=False),
    "the thread is deleted": lambda person, talk: Thread.objects.filter(id=talk.id).update(deleted_at=ago(seconds=1)),
    "the group is left": lambda person, talk: Membership.objects.filter(person=person, space=talk.space).delete(),
    "the thread is moved": lambda person, talk: Thread.objects.filter(id=talk.id).update(
        space=spaces.personal_space(talk.owner_id)
    ),
}


@pytest.mark.parametrize("loss", ["the thread is deleted", "the group is left", "the thread is moved"])
def test_messages_can_be_posted_to_a_thread_until(person, talk, loss):
    fields = {"author_id": person.id, "message": "Where is the key?"}
    services.post_message(talk.id, client_key=uuid.uuid4(), **fields)

    LOSSES[loss](person, talk)

    with pytest.raises(NotFoundError):
        services.post_message(talk.id, client_key=uuid.uuid4(), **fields)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_socket_of_a_thread_is_authorized_until(person, bob, talk, loss):
    lost, kept = socket_of(person, talk), socket_of(bob, thread(bob))
    assert authorized([lost, kept]) == {lost, kept}
    LOSSES[loss](person, talk)
    assert authorized([lost, kept]) == {kept}


def test_a_socket_without_a_thread_needs_its_account_epoch_and_login_session(person, bob):
    sockets = {socket_of(person, None), socket_of(person, None), socket_of(bob, None)}
    assert authorized(sockets) == sockets

    expired = next(socket for socket in sockets if socket.person_id == person.id)
    LoginSession.objects.filter(session_key=expired.session_key).update(expire_date=ago(seconds=1))
    assert authorized(sockets) == sockets - {expired}

    User.objects.filter(id=person.id).update(epoch=person.epoch + 1)
    assert {socket.person_id for socket in authorized(sockets)} == {bob.id}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_author_may_receive_the_answer_until(person, bob, talk, loss):
    asked, other = turn(talk, author=person, state="recalling"), turn(thread(bob), state="recalling")
    assert access.turns_without_access([asked.id, other.id]) == set()
    assert access.can_receive(person.id, talk.id)
    LOSSES[loss](person, talk)
    assert access.turns_without_access([asked.id, other.id]) == {asked.id}
    assert not access.can_receive(person.id, talk.id)


@pytest.mark.parametrize(
    "end", [lambda tokens: tokens.update(expires_at=ago(seconds=1)), lambda tokens: tokens.delete()]
)
def test_an_answer_to_a_client_needs_its_token(person, talk, end):
    for name in ("ended", "valid"):
        create_token(person, name=name, scopes=[ApiToken.Scope.ASK], days=30)
    ended, valid = (ApiToken.objects.get(name=name) for name in ("ended", "valid"))
    of_ended = turn(talk, author=person, api_token_id=ended.id)
    others = [turn(talk, author=person, api_token_id=valid.id), turn(talk, author=person)]
    asked = [of_ended.id, *(one.id for one in others)]
    assert access.turns_without_access(asked) == set()

    end(ApiToken.objects.filter(name="ended"))

    assert access.turns_without_access(asked) == {of_ended.id}
    assert not access.can_receive(person.id, talk.id, ended.id)
    assert access.can_receive(person.id, talk.id, valid.id)


def test_an_exchange_is_forgotten_by_its_owner_the_owner_of_its_thread_or_an_administrator(person, bob, talk):
    carla = PersonFactory()
    Membership.objects.create(space=talk.space, person=carla)
    thread(carla, space=talk.space)
    stored = exchange(person, "Where is the kayak?", space=talk.space, thread_id=talk.id)

    for forgetter in (person, bob):
        assert access.can_forget(forgetter.id, stored, is_administrator=False)
        assert access.exchange_to_forget(forgetter.id, stored.id, is_administrator=False) == stored
    assert access.exchange_to_forget(carla.id, stored.id, is_administrator=True) == stored
    assert not access.can_forget(carla.id, stored, is_administrator=False)
    with pytest.raises(NotFoundError):
        access.exchange_to_forget(carla.id, stored.id, is_administrator=False)


def test_a_note_is_forgotten_by_its_owner_or_an_administrator(person, bob, talk):
    note = exchange(person, "The kayak is behind the barn.", space=talk.space, source="note")
    assert access.exchange_to_forget(person.id, note.id, is_administrator=False) == note
    assert access.exchange_to_forget(bob.id, note.id, is_administrator=True) == note
    with pytest.raises(NotFoundError):
        access.exchange_to_forget(bob.id, note.id, is_administrator=False)


def test_an_administrator_forgets_only_what_they_can_read(person, bob):
    private = exchange(person, "The kayak is behind the barn.")
    with pytest.raises(NotFoundError):
        access.exchange_to_forget(bob.id, private.id, is_administrator=True)


def test_a_forgotten_exchange_cannot_be_opened_or_forgotten_again(person):
    stored = exchange(person, "The kayak is behind the barn.")
    assert access.get_exchange(person.id, stored.id) == stored
    Exchange.objects.filter(id=stored.id).update(forgotten_at=ago(seconds=1))
    with pytest.raises(NotFoundError):
        access.get_exchange(person.id, stored.id)
    with pytest.raises(NotFoundError):
        access.exchange_to_forget(person.id, stored.id, is_administrator=True)


def test_only_its_owner_reaches_a_deleted_thread_and_only_while_they_read_its_space(person, bob, talk):
    with pytest.raises(NotFoundError):
        access.get_deleted_thread(bob.id, talk.id)  # not deleted yet
    Thread.objects.filter(id=talk.id).update(deleted_at=ago(seconds=1))
    other = thread(bob, space=talk.space, deleted_at=ago(seconds=1))
    assert access.get_deleted_thread(bob.id, talk.id) == talk
    assert access.get_deleted_thread(bob.id, other.id) == other
    for stranger in (person, PersonFactory()):
        with pytest.raises(NotFoundError):
            access.get_deleted_thread(stranger.id, talk.id)
    with pytest.raises(NotFoundError):
        access.get_thread(bob.id, talk.id)

    Membership.objects.filter(person=bob).delete()
    with pytest.raises(NotFoundError):
        access.get_deleted_thread(bob.id, talk.id)


def test_an_unsent_image_is_opened_by_its_owner_and_a_sent_one_by_readers_of_its_thread(person, bob, talk):
    image = image_of(person)
    assert access.get_attachment(person.id, image.id) == image
    with pytest.raises(NotFoundError):
        access.get_attachment(bob.id, image.id)

    turn(talk, author=person).attachments.add(image)
    assert access.get_attachment(bob.id, image.id) == image
    Membership.objects.filter(person=person).delete()
    with pytest.raises(NotFoundError):
        access.get_attachment(person.id, image.id)


def test_a_turn_is_reached_only_through_its_own_thread(person, bob, talk):
    elsewhere = thread(bob, space=talk.space)
    other = turn(elsewhere)
    turn(talk)
    one = turn(talk)
    assert access.get_turn(person.id, talk.id, one.id) == one
    assert access.turn_by_id(person.id, one.id) == one
    assert access.turn_by_id(person.id, other.id) == other
    for find in (
        lambda: access.get_turn(person.id, elsewhere.id, one.id),
        lambda: access.get_turn(PersonFactory().id, talk.id, one.id),
        lambda: access.turn_by_id(PersonFactory().id, one.id),
        lambda: access.turn_by_id(person.id, uuid.uuid4()),
    ):
        with pytest.raises(NotFoundError):
            find()


def test_only_its_owner_obtains_a_thread_for_its_owner(person, bob, talk):
    assert access.get_owned_thread(bob.id, talk.id) == talk
    assert access.get_thread(person.id, talk.id) == talk
    with pytest.raises(NotFoundError):
        access.get_owned_thread(person.id, talk.id)


def test_managers_of_a_space_have_the_rights_of_an_owner_who_cannot_read_it_any_more(person, bob, talk):
    manager = PersonFactory()
    Membership.objects.create(space=talk.space, person=manager, role=Membership.Role.MANAGER)
    one = turn(talk, author=bob)
    assert access.roles_in_thread(manager.id, talk) == {"manager"}
    with pytest.raises(NotFoundError):
        access.get_owned_thread(manager.id, talk.id)

    Membership.objects.filter(person=bob).delete()
    assert access.roles_in_thread(manager.id, talk) == {"owner"}
    assert access.get_owned_thread(manager.id, talk.id) == talk
    assert access.turn_to_change(manager.id, talk.id, one.id) == one
    said = exchange(bob, "The key hangs behind the clock.", space=talk.space, thread_id=talk.id)
    assert access.can_forget(manager.id, said, is_administrator=False)
    assert not access.can_forget(person.id, said, is_administrator=False)
    with pytest.raises(NotFoundError):
        access.get_owned_thread(person.id, talk.id)
    services.delete_thread(talk)
    assert access.get_deleted_thread(manager.id, talk.id) == talk
    with pytest.raises(NotFoundError):
        access.get_deleted_thread(person.id, talk.id)


def test_only_the_given_turns_are_checked_for_access(person, bob, talk):
    asked, other = (turn(talk, author=person) for _ in range(2))
    Membership.objects.filter(person=person).delete()
    assert access.turns_without_access([asked.id]) == {asked.id}
    assert access.turns_without_access([asked.id, other.id]) == {asked.id, other.id}

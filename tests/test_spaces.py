"""Spaces: who reads and manages each kind, what all readers of one share, and names."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from memory.errors import NotFoundError
from memory.models import Membership, Reveal, Space
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, group

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


@pytest.fixture
def carla(db):
    return PersonFactory(name="Carla Other")


@pytest.fixture
def spaces(ada, bob, carla) -> dict[str, Space]:
    """Return the spaces by name: Bob's own, a group of Ada and Bob, another one of Carla, and the team's."""
    return {
        "bob": access.personal_space(bob.id),
        "carla": access.personal_space(carla.id),
        "hardware": group("Hardware", ada, bob),
        "music": group("Music", carla),
        "team": access.team_space(),
    }


def ids(spaces: dict[str, Space], *names: str) -> frozenset:
    return frozenset(spaces[name].id for name in names)


def test_a_person_reads_their_own_space_their_groups_and_the_team(spaces, bob):
    assert access.readable_space_ids(bob.id) == ids(spaces, "bob", "hardware", "team")


def test_readers_of_a_thread_share_the_space_and_the_team(spaces):
    def shared(name: str) -> frozenset:
        return access.space_ids_shared_by_all_readers(spaces[name].id)

    assert shared("bob") == ids(spaces, "bob", "hardware", "team")
    assert shared("hardware") == ids(spaces, "hardware", "team")
    assert shared("team") == ids(spaces, "team")
    missing = spaces["music"].id
    Membership.objects.filter(space=missing).delete()
    spaces["music"].delete()
    assert access.space_ids_shared_by_all_readers(missing) == frozenset()


def test_each_kind_of_space_has_its_readers(spaces, ada, bob, carla):
    everybody = get_user_model().objects.filter(is_active=True)

    def readers(name: str) -> set:
        return {person.name for person in access.readers(spaces[name], everybody)}

    assert readers("bob") == {"Bob Team"}
    assert readers("hardware") == {"Ada Admin", "Bob Team"}
    assert readers("music") == {"Carla Other"}
    assert readers("team") == {"Ada Admin", "Bob Team", "Carla Other"}


def test_the_audience_is_told_in_words(spaces):
    assert access.audience_text(spaces["bob"]) == "Only you can read it."
    assert access.audience_text(spaces["music"]) == "1 person can read it."
    assert access.audience_text(spaces["hardware"]) == "2 people can read it."
    assert access.audience_text(spaces["team"]) == "3 people can read it."
    get_user_model().objects.filter(name="Bob Team").update(is_active=False)
    assert access.audience_text(spaces["hardware"]) == "1 person can read it."


def test_owners_group_managers_and_administrators_manage(spaces, ada, bob, carla):
    Membership.objects.filter(space=spaces["hardware"], person=bob).update(role=Membership.Role.MANAGER)

    def managed_by(person) -> set[str]:
        return {name for name, space in spaces.items() if access.manages_space(person.id, space)}

    assert managed_by(bob) == {"bob", "hardware"}
    assert managed_by(carla) == {"carla"}
    assert managed_by(ada) == {"team"}

    ada.is_active = False
    ada.save()
    assert managed_by(ada) == set()
    assert not access.manages_space(spaces["team"].id, spaces["team"]), "nobody has this id"


def test_an_administrator_sees_revealed_spaces_until_the_reveal_ends(spaces, ada):
    now = timezone.now()
    for name, ends_at in (("bob", now + timedelta(minutes=1)), ("carla", now - timedelta(seconds=1))):
        Reveal.objects.create(space=spaces[name], by=ada, reason="Because of a request", at=now, ends_at=ends_at)

    own = frozenset({access.personal_space(ada.id).id})
    assert access.readable_space_ids(ada.id) == own | ids(spaces, "hardware", "team")
    assert access.admin_visible_space_ids(ada.id) == own | ids(spaces, "bob", "hardware", "team")


def test_forbidden_and_missing_spaces_have_the_same_error(spaces, bob):
    assert access.get_space(bob.id, spaces["hardware"].id) == spaces["hardware"]
    errors = []
    for space_id in (spaces["carla"].id, spaces["music"].id, bob.id):
        with pytest.raises(NotFoundError) as caught:
            access.get_space(bob.id, space_id)
        errors.append(str(caught.value))
    assert len(set(errors)) == 1


def test_spaces_are_listed_personal_first_then_groups_by_name_then_the_team(spaces, bob):
    group("antennas", bob)

    listed = access.list_readable_spaces(bob.id)

    assert [space.name for space in listed] == [spaces["bob"].name, "antennas", "Hardware", spaces["team"].name]


@pytest.mark.parametrize(
    ("name", "key"), [("own", "bob"), ("Only you", "bob"), (" HARDWARE ", "hardware"), ("team", "team")]
)
def test_a_space_is_found_by_name(spaces, bob, name, key):
    assert access.space_by_name(bob.id, name) == spaces[key]


@pytest.mark.parametrize("name", ["", "  ", "Music", "nothing like it"])
def test_no_name_and_names_of_other_spaces_find_nothing(spaces, bob, name):
    with pytest.raises(NotFoundError):
        access.space_by_name(bob.id, name)


def test_the_personal_space_and_the_team_space_exist_once(bob):
    assert access.personal_space(bob.id) == access.personal_space(bob.id)
    assert access.team_space() == access.team_space()
    assert Space.objects.filter(owner=bob).count() == 1
    # What another process created meanwhile is used.
    assert access._create_space(kind=Space.Kind.PERSONAL, owner_id=bob.id) == access.personal_space(bob.id)
    assert access._create_space(kind=Space.Kind.TEAM, name="Other") == access.team_space()

"""Groups of an identity provider give members of groups and administrators, and take back only what they gave."""

from __future__ import annotations

import pytest

from cato_web.accounts import groups, roles
from cato_web.accounts.models import AuditEntry, User
from cato_web.accounts.openid import _groups
from cato_web.accounts.openid import map_groups as apply_mapping
from memory import api as memory
from memory.models import MembershipChange
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, group, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def configure(settings):
    """Return a function that changes keys of the section `openid`."""

    def change(**keys) -> None:
        section = settings.CATO.openid.model_copy(update=keys)
        settings.CATO = settings.CATO.model_copy(update={"openid": section})

    return change


@pytest.fixture(autouse=True)
def mapping(configure):
    configure(groups_claim="groups", groups={"eng": "Engineering", "ops": "Operations"}, administrators=["it"])


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob")


def reads(person, space) -> bool:
    return space.id in access.readable_space_ids(person.id)


def is_administrator(person) -> bool:
    return User.objects.get(pk=person.pk).is_administrator


def test_a_sign_in_gives_and_takes_back_memberships(bob):
    engineering, operations = group("Engineering"), group("Operations")
    apply_mapping(bob, frozenset({"eng", "unknown"}))
    assert (reads(bob, engineering), reads(bob, operations)) == (True, False)
    apply_mapping(bob, frozenset({"ops"}))
    assert (reads(bob, engineering), reads(bob, operations)) == (False, True)
    apply_mapping(bob, frozenset())
    assert (reads(bob, engineering), reads(bob, operations)) == (False, False)
    actions = list(AuditEntry.objects.order_by("id").values_list("action", "actor"))
    assert actions == [
        ("group.member_added", None),
        ("group.member_added", None),
        ("group.member_removed", None),
        ("group.member_removed", None),
    ]
    assert MembershipChange.objects.count() == 4


def test_members_that_somebody_added_stay(ada, bob):
    engineering = group("Engineering", ada)
    groups.add_member(engineering, bob, by=ada)
    apply_mapping(bob, frozenset({"eng"}))
    apply_mapping(bob, frozenset())
    assert reads(bob, engineering)


def test_a_member_whom_somebody_made_manager_stays(ada, bob):
    engineering = group("Engineering", ada)
    apply_mapping(bob, frozenset({"eng"}))
    groups.set_role(engineering, bob.id, "manager", by=ada)
    apply_mapping(bob, frozenset())
    assert reads(bob, engineering)


def test_a_group_that_the_mapping_does_not_name_is_not_joined(bob):
    music = group("Music")
    apply_mapping(bob, frozenset({"Music", "music"}))
    assert not reads(bob, music)


def test_a_project_that_somebody_named_like_a_mapped_group_is_not_joined(bob, ada):
    """Any member can create a project, and would choose who reads it by its name."""
    project = memory.create_project("Engineering", by=ada.id)
    apply_mapping(bob, frozenset({"eng"}))
    assert not reads(bob, project)


def test_a_group_that_does_not_exist_is_logged(bob, caplog):
    apply_mapping(bob, frozenset({"eng"}))
    assert "'Engineering', which does not exist" in caplog.text


def test_the_role_is_given_and_taken_back(ada, bob):
    apply_mapping(bob, frozenset({"it"}))
    assert is_administrator(bob)
    assert bob.is_administrator
    apply_mapping(bob, frozenset())
    assert not is_administrator(bob)


def test_an_administrator_whom_somebody_named_stays(ada, bob):
    roles.set_role(bob, User.Role.ADMINISTRATOR, by=ada)
    apply_mapping(bob, frozenset())
    assert is_administrator(bob)
    apply_mapping(bob, frozenset({"it"}))
    apply_mapping(bob, frozenset())
    assert is_administrator(bob)


def test_the_last_administrator_stays_one(bob, caplog):
    apply_mapping(bob, frozenset({"it"}))
    apply_mapping(bob, frozenset())
    assert is_administrator(bob)
    assert "last administrator" in caplog.text


@pytest.mark.parametrize("keys", [{"groups_claim": None}, {"groups": {}, "administrators": []}])
def test_nothing_changes_without_a_mapping(ada, bob, configure, keys):
    engineering = group("Engineering")
    apply_mapping(bob, frozenset({"eng", "it"}))
    configure(**keys)
    apply_mapping(bob, frozenset())
    assert reads(bob, engineering)
    assert is_administrator(bob)


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        ({"groups": ["eng", 3, "ops"]}, {"eng", "ops"}),
        ({"groups": "eng"}, set()),
        ({}, set()),
        ({"_claim_names": {"groups": "src1"}}, None),
    ],
)
def test_claims_are_read_strictly(claims, found):
    assert _groups(claims) == found


def test_unknown_groups_change_nothing(bob):
    engineering = group("Engineering")
    apply_mapping(bob, frozenset({"eng"}))
    apply_mapping(bob, None)
    assert reads(bob, engineering)


def test_the_page_of_the_group_says_who_added_the_member(ada, bob):
    engineering = group("Engineering", ada)
    apply_mapping(bob, frozenset({"eng"}))
    page = signed_in(ada).get(f"/spaces/{engineering.id}").content.decode()
    assert "The identity provider added Bob." in page

"""Reveals: an administrator reads a space for 30 minutes, with a reason, until they or a lost role end it."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from memory import signals
from memory.administration import reveals
from memory.errors import InvalidInputError, NotFoundError
from memory.models import Reveal, Space
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, ago

pytestmark = pytest.mark.django_db

REASON = "The police asks for the kayak"


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def bobs(db) -> Space:
    return access.personal_space(PersonFactory(name="Bob Team").id)


def test_a_missing_space_cannot_be_revealed(bobs):
    assert reveals.get_space(bobs.id) == bobs
    with pytest.raises(NotFoundError):
        reveals.get_space(uuid.uuid4())


@pytest.mark.parametrize("reason", ["", "x" * 9, "x" + " " * 20 + "y", "x" * 301])
def test_a_reveal_needs_a_reason_of_10_to_300_characters(ada, bobs, reason):
    with pytest.raises(InvalidInputError, match="10–300 characters"):
        reveals.reveal(bobs, by=ada.id, reason=reason)
    assert not Reveal.objects.exists()
    assert [len(reveals.reveal(bobs, by=ada.id, reason="x" * n).reason) for n in (10, 300)] == [10, 300]


def test_a_reveal_lasts_30_minutes_for_this_administrator_and_space(ada, bobs):
    other = AdministratorFactory()
    carlas = access.personal_space(PersonFactory().id)

    row = reveals.reveal(bobs, by=ada.id, reason=f"  {REASON} \n")

    assert (row.reason, row.ends_at - row.at) == (REASON, timezone.timedelta(minutes=30))
    assert bobs.id in access.admin_visible_space_ids(ada.id)
    assert carlas.id not in access.admin_visible_space_ids(ada.id)
    assert bobs.id not in access.admin_visible_space_ids(other.id)
    assert (list(reveals.active_reveals(ada.id)), list(reveals.active_reveals(other.id))) == ([row], [])


def test_a_reveal_ends_once_and_only_by_its_administrator(ada, bobs, django_capture_on_commit_callbacks):
    ended: list[int] = []

    def receive(*, reveal: Reveal, **_: object) -> None:
        ended.append(reveal.pk)

    row, later = (reveals.reveal(bobs, by=ada.id, reason=REASON) for _ in range(2))
    signals.reveal_ended.connect(receive)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            assert not reveals.end_reveal(row.pk, by=AdministratorFactory().id)
            assert list(reveals.active_reveals(ada.id)) == [row, later], "the first to end comes first"
            assert reveals.end_reveal(row.pk, by=ada.id)
            assert not reveals.end_reveal(row.pk, by=ada.id)
    finally:
        signals.reveal_ended.disconnect(receive)

    assert ended == [row.pk]
    assert list(reveals.active_reveals(ada.id)) == [later]


def test_all_reveals_of_a_person_end_and_those_of_others_stay(ada, bobs):
    other = AdministratorFactory()
    for administrator in (ada, ada, other):
        reveals.reveal(bobs, by=administrator.id, reason=REASON)

    reveals.end_all_reveals(ada.id)

    assert not reveals.active_reveals(ada.id).exists()
    assert reveals.active_reveals(other.id).count() == 1


def test_the_owner_sees_all_reveals_of_the_space_newest_first(ada, bobs):
    old, new = (reveals.reveal(bobs, by=ada.id, reason=f"{REASON} {number}") for number in range(2))
    Reveal.objects.filter(pk=old.pk).update(at=ago(days=1), ends_at=ago(hours=23))
    reveals.reveal(access.personal_space(ada.id), by=ada.id, reason=REASON)

    assert list(reveals.list_reveals(bobs)) == [new, old]

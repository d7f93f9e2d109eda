"""Authorization of spaces: all decisions on read and manage access are made here."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Set
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import FilteredRelation, Model, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.errors import NotFoundError
from memory.models import Membership, Reveal, Space

SpaceIds = frozenset[uuid.UUID]
M = TypeVar("M", bound=Model)


def readable_space_ids(person_id: uuid.UUID) -> SpaceIds:
    """Return the readable spaces of this person: their personal space, their groups and the team space."""
    return frozenset(readable_spaces(person_id).values_list("id", flat=True))


def space_ids_shared_by_all_readers(space_id: uuid.UUID) -> SpaceIds:
    """Return the spaces that every reader of `space_id` can read; empty if the space does not exist."""
    space = Space.objects.filter(id=space_id).first()
    return frozenset() if space is None else audience_space_ids(space)


def audience_space_ids(space: Space) -> SpaceIds:
    """Return the spaces that every reader of `space` can read."""
    if space.owner_id is not None:
        return readable_space_ids(space.owner_id)
    team = Space.objects.filter(kind=Space.Kind.TEAM).values_list("id", flat=True)
    return frozenset({space.id, *team})


def manages_space(person_id: uuid.UUID, space: Space) -> bool:
    """Return True if this person manages `space`.

    The owner manages a personal space, the managers a group, and administrators the team space. Without read access a
    person manages nothing.
    """
    if space.kind == Space.Kind.PERSONAL:
        return space.owner_id == person_id
    if space.kind == Space.Kind.GROUP:
        managers = Membership.objects.filter(space=space, role=Membership.Role.MANAGER)
        return managers.filter(person_id=person_id).exists()
    return _is_administrator(person_id)


def settable_knowledge(person_id: uuid.UUID, spaces: Iterable[Space]) -> SpaceIds:
    """Return the spaces for which this person decides whether statements are extracted, which costs tokens of the model.

    The owner decides for a personal space, and administrators for all others.
    """
    decides_for_shared = _is_administrator(person_id)
    return frozenset(
        space.pk
        for space in spaces
        if (space.owner_id == person_id if space.kind == Space.Kind.PERSONAL else decides_for_shared)
    )


def admin_visible_space_ids(person_id: uuid.UUID) -> SpaceIds:
    """Return the spaces whose text the administration pages show to this administrator.

    These are the readable spaces and those with an active reveal.
    """
    revealed = Reveal.objects.filter(by_id=person_id, ends_at__gt=timezone.now())
    return readable_space_ids(person_id) | frozenset(revealed.values_list("space_id", flat=True))


def personal_space(person_id: uuid.UUID) -> Space:
    """Return the person's personal space, creating it on first use."""
    found = Space.objects.filter(kind=Space.Kind.PERSONAL, owner_id=person_id).first()
    return found or _create_space(kind=Space.Kind.PERSONAL, owner_id=person_id)


def team_space() -> Space:
    """Return the team space, creating it on first use."""
    found = Space.objects.filter(kind=Space.Kind.TEAM).first()
    return found or _create_space(kind=Space.Kind.TEAM, name="Everyone")


def get_space(person_id: uuid.UUID, space_id: uuid.UUID) -> Space:
    """Return the space if this person can read it.

    Raises NotFoundError, with the same message for missing and forbidden spaces.
    """
    found = readable_spaces(person_id).filter(id=space_id).first()
    if found is None:
        raise NotFoundError(_("Not found."))
    return found


def list_readable_spaces(person_id: uuid.UUID) -> list[Space]:
    """Return the readable spaces as rows: the personal space, groups by name, then the team space."""
    order = {Space.Kind.PERSONAL: 0, Space.Kind.GROUP: 1, Space.Kind.TEAM: 2}
    return sorted(readable_spaces(person_id), key=lambda space: (order[Space.Kind(space.kind)], space.name.casefold()))


def space_by_name(person_id: uuid.UUID, name: str) -> Space:
    """Return the readable space of this name, ignoring case. Raises NotFoundError.

    "own" and "team" name the personal space and the team space.
    """
    folded_name = name.strip().casefold()
    for space in readable_spaces(person_id).order_by("kind", "name"):
        names = {
            space.name.casefold(),
            space.display_name.casefold(),
            "own" if space.owner_id else "",
            "team" if space.kind == Space.Kind.TEAM else "",
        }
        if folded_name and folded_name in names:
            return space
    raise NotFoundError(_("There is no space %(name)s, or it is not yours to see.") % {"name": name})


def readers(space: Space, active_people: QuerySet[M]) -> QuerySet[M]:
    """Return those of `active_people` who can read `space`."""
    if space.kind == Space.Kind.PERSONAL:
        return active_people.filter(id=space.owner_id)
    if space.kind == Space.Kind.TEAM:
        return active_people
    return active_people.filter(id__in=Membership.objects.filter(space=space).values("person_id"))


def in_spaces(rows: QuerySet[M], spaces: Iterable[uuid.UUID]) -> QuerySet[M]:
    """Return those of `rows` that are in `spaces`; empty `spaces` give no rows."""
    return rows.filter(space_id__in=list(spaces))


def readable_pairs(space_ids: Set[uuid.UUID], person_ids: Set[uuid.UUID]) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Return the pairs of these spaces and people in which the person can read the space, with one statement."""
    memberships = FilteredRelation("membership", condition=Q(membership__person_id__in=list(person_ids)))
    rows = Space.objects.filter(id__in=list(space_ids)).annotate(reading=memberships)
    pairs = set()
    for space_id, kind, owner_id, member_id in rows.values_list("id", "kind", "owner_id", "reading__person_id"):
        readers = {Space.Kind.PERSONAL: {owner_id}, Space.Kind.GROUP: {member_id}, Space.Kind.TEAM: person_ids}
        pairs |= {(space_id, person_id) for person_id in readers[Space.Kind(kind)] & person_ids}
    return pairs


def readable_spaces(person_id: uuid.UUID | OuterRef) -> QuerySet[Space]:
    """Return the readable spaces of this person for a condition, or those of the person of each row."""
    return _readable_spaces(person_id)


def _readable_spaces(person_id: uuid.UUID | OuterRef) -> QuerySet[Space]:
    person_of_membership = OuterRef(person_id) if isinstance(person_id, OuterRef) else person_id
    groups = Membership.objects.filter(person_id=person_of_membership).values("space_id")
    return Space.objects.filter(
        Q(kind=Space.Kind.PERSONAL, owner_id=person_id)
        | Q(kind=Space.Kind.GROUP, id__in=groups)
        | Q(kind=Space.Kind.TEAM)
    )


def _is_administrator(person_id: uuid.UUID) -> bool:
    person: Any = get_user_model().objects.filter(pk=person_id, is_active=True).first()
    return person is not None and person.is_administrator


def _create_space(**fields: object) -> Space:
    try:
        with transaction.atomic():
            return Space.objects.create(**fields)
    except IntegrityError:  # another process created it concurrently
        fields.pop("name", None)
        return Space.objects.get(**fields)


def audience_text(space: Space) -> str:
    """Return a sentence with the number of people who can read the space now."""
    if space.kind == Space.Kind.PERSONAL:
        return _("Only you can read it.")
    people = get_user_model().objects.filter(is_active=True)
    count = readers(space, people).count()
    return ngettext("%(count)s person can read it.", "%(count)s people can read it.", count) % {"count": count}

"""Authorization of spaces: all decisions on read and manage access are made here."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Set
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Count, FilteredRelation, Model, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.errors import InvalidInputError, NotFoundError
from memory.models import Membership, Reveal, Space

SpaceIds = frozenset[uuid.UUID]
M = TypeVar("M", bound=Model)


def readable_space_ids(person_id: uuid.UUID) -> SpaceIds:
    """Return the readable spaces of this person: their personal space, their groups and projects, and the team space."""
    return frozenset(readable_spaces(person_id).values_list("id", flat=True))


def space_ids_shared_by_all_readers(space_id: uuid.UUID) -> SpaceIds:
    """Return the spaces that every reader of `space_id` can read; empty if the space does not exist."""
    space = Space.objects.filter(id=space_id).first()
    return frozenset() if space is None else audience_space_ids(space)


def audience_space_ids(space: Space) -> SpaceIds:
    """Return the spaces from which a thread in `space` recalls: at most those that every reader of it can read.

    A project decides for itself whether this is the project alone. Personal spaces are never among those of a project,
    even if it has one member, because others can join and then read the answers.
    """
    return frozenset(audience_spaces(space).values_list("id", flat=True))


def audience_spaces(space: Space) -> QuerySet[Space]:
    """Return the spaces of `audience_space_ids` for a condition."""
    if space.owner_id is not None:
        return readable_spaces(space.owner_id)
    shared = Q(id=space.id)
    if not space.is_project or space.recall_mode != Space.RecallMode.PROJECT_ONLY:
        shared |= Q(kind=Space.Kind.TEAM)
        if space.is_project:
            shared |= Q(id__in=_spaces_of_all_members(space))
    return Space.objects.filter(shared)


def _spaces_of_all_members(space: Space) -> QuerySet[Membership, uuid.UUID]:
    """Return the ids of the groups and projects in which every member of `space` is a member."""
    members = Membership.objects.filter(space=space)
    shared = Membership.objects.filter(person_id__in=members.values("person_id")).values("space_id")
    count = members.values("space_id").annotate(count=Count("id")).values("count")
    return shared.annotate(count=Count("id")).filter(count=Subquery(count)).values_list("space_id", flat=True)


def preferred_space_id(space: Space) -> uuid.UUID | None:
    """Return the space that comes first in the recall of a thread in `space`: a project, if it is set so; else None."""
    return space.id if space.is_project and space.recall_mode == Space.RecallMode.PROJECT_FIRST else None


def ensure_open(space: Space) -> None:
    """Raise InvalidInputError if nothing can be added to the space, because it is an archived project."""
    if space.archived_at is not None:
        sentence = _("%(project)s is archived. A manager of the project can reopen it on its page.")
        raise InvalidInputError(sentence % {"project": space.name})


def manages_space(person_id: uuid.UUID, space: Space) -> bool:
    """Return True if this person manages `space`: see `managed_space_ids`."""
    return bool(managed_space_ids(person_id, [space]))


def managed_space_ids(person_id: uuid.UUID, spaces: Iterable[Space]) -> SpaceIds:
    """Return those of `spaces` that this person manages, with at most two statements.

    The owner manages a personal space, the managers a group or project, and administrators the team space. Without read
    access a person manages nothing.
    """
    spaces = list(spaces)
    managed = {space.pk for space in spaces if space.kind == Space.Kind.PERSONAL and space.owner_id == person_id}
    if with_members := [space.pk for space in spaces if space.has_members]:
        managers = Membership.objects.filter(role=Membership.Role.MANAGER, person_id=person_id)
        managed |= set(managers.filter(space__in=with_members).values_list("space_id", flat=True))
    team = {space.pk for space in spaces if space.kind == Space.Kind.TEAM}
    if team and is_administrator(person_id):
        managed |= team
    return frozenset(managed)


def is_administrator(person_id: uuid.UUID) -> bool:
    """Return True if this person is an administrator whose account is active."""
    person: Any = get_user_model().objects.filter(pk=person_id, is_active=True).first()
    return person is not None and person.is_administrator


def settable_knowledge(person_id: uuid.UUID, spaces: Iterable[Space]) -> SpaceIds:
    """Return the spaces for which this person decides whether statements are extracted, which costs tokens of the model.

    The owner decides for a personal space, and administrators for all others.
    """
    decides_for_shared = is_administrator(person_id)
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
    """Return the readable spaces as rows: the personal space, projects and groups by name, then the team space."""
    order = [Space.Kind.PERSONAL, Space.Kind.PROJECT, Space.Kind.GROUP, Space.Kind.TEAM]
    return sorted(
        readable_spaces(person_id), key=lambda space: (order.index(Space.Kind(space.kind)), space.name.casefold())
    )


def list_open_spaces(person_id: uuid.UUID) -> list[Space]:
    """Return the spaces to which this person can add something, in the same order: without archived projects."""
    return [space for space in list_readable_spaces(person_id) if space.archived_at is None]


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


def count_readers(spaces: Iterable[Space]) -> dict[uuid.UUID, int]:
    """Return how many active people can read each of these spaces, by id, with at most two statements.

    For a personal space that is 1.
    """
    people = get_user_model().objects.filter(is_active=True)
    spaces = list(spaces)
    counts = {space.pk: 1 for space in spaces}
    if with_members := [space.pk for space in spaces if space.has_members]:
        members = Membership.objects.filter(space__in=with_members, person__in=people).values("space")
        found = members.annotate(count=Count("pk")).values_list("space", "count")
        counts |= dict.fromkeys(with_members, 0) | dict(found)
    if team := [space.pk for space in spaces if space.kind == Space.Kind.TEAM]:
        counts |= dict.fromkeys(team, people.count())
    return counts


def in_spaces(rows: QuerySet[M], spaces: Iterable[uuid.UUID]) -> QuerySet[M]:
    """Return those of `rows` that are in `spaces`; empty `spaces` give no rows."""
    return rows.filter(space_id__in=list(spaces))


def readable_pairs(space_ids: Set[uuid.UUID], person_ids: Set[uuid.UUID]) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Return the pairs of these spaces and people in which the person can read the space, with one statement."""
    memberships = FilteredRelation("membership", condition=Q(membership__person_id__in=list(person_ids)))
    rows = Space.objects.filter(id__in=list(space_ids)).annotate(reading=memberships)
    pairs = set()
    for space_id, kind, owner_id, member_id in rows.values_list("id", "kind", "owner_id", "reading__person_id"):
        readers = {Space.Kind.PERSONAL: {owner_id}, Space.Kind.TEAM: person_ids}.get(Space.Kind(kind), {member_id})
        pairs |= {(space_id, person_id) for person_id in readers & person_ids}
    return pairs


def readable_spaces(person_id: uuid.UUID | OuterRef) -> QuerySet[Space]:
    """Return the readable spaces of this person for a condition, or those of the person of each row."""
    return _readable_spaces(person_id)


# The check on which all others depend. Other modules import the function above; tests replace this one for them, too.
def _readable_spaces(person_id: uuid.UUID | OuterRef) -> QuerySet[Space]:
    person_of_membership = OuterRef(person_id) if isinstance(person_id, OuterRef) else person_id
    joined = Membership.objects.filter(person_id=person_of_membership).values("space_id")
    return Space.objects.filter(
        Q(kind=Space.Kind.PERSONAL, owner_id=person_id)
        | Q(kind__in=Space.WITH_MEMBERS, id__in=joined)
        | Q(kind=Space.Kind.TEAM)
    )


def _create_space(**fields: object) -> Space:
    try:
        with transaction.atomic():
            return Space.objects.create(**fields)
    except IntegrityError:  # another process created it concurrently
        fields.pop("name", None)
        return Space.objects.get(**fields)


def audience_text(space: Space) -> str:
    """Return a sentence with the number of people who can read the space now."""
    return audience_texts([space])[space.pk]


def audience_texts(spaces: Iterable[Space]) -> dict[uuid.UUID, str]:
    """Return `audience_text` of each of these spaces, by id."""
    spaces = list(spaces)
    counts = count_readers(spaces)
    return {space.pk: _audience_text(space, counts[space.pk]) for space in spaces}


def _audience_text(space: Space, count: int) -> str:
    if space.kind == Space.Kind.PERSONAL:
        return _("Only you can read it.")
    return ngettext("%(count)s person can read it.", "%(count)s people can read it.", count) % {"count": count}

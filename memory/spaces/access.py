"""Who may read what: the only place that answers it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.errors import NotFoundError
from memory.models import Membership, Reveal, Space

SpaceIds = frozenset[uuid.UUID]
M = TypeVar("M", bound=Model)


def readable_space_ids(person_id: uuid.UUID) -> SpaceIds:
    """The spaces this person may read: their own, their groups', the team's."""
    return frozenset(_readable(person_id).values_list("id", flat=True))


def space_ids_shared_by_all_readers(space_id: uuid.UUID) -> SpaceIds:
    """The spaces that everyone who reads `space_id` may read; none for a space that is not there."""
    space = Space.objects.filter(id=space_id).first()
    if space is None:
        return frozenset()
    if space.owner_id is not None:
        return readable_space_ids(space.owner_id)
    team = Space.objects.filter(kind=Space.Kind.TEAM).values_list("id", flat=True)
    return frozenset({space.id, *team})


def manages_space(person_id: uuid.UUID, space: Space) -> bool:
    """Whether this person manages `space`: the owner of a personal space, a group's managers, for the team's space the
    administrators. Who does not read a space does not manage it."""
    if space.kind == Space.Kind.OWN:
        return space.owner_id == person_id
    if space.kind == Space.Kind.GROUP:
        managers = Membership.objects.filter(space=space, role=Membership.Role.MANAGER)
        return managers.filter(person_id=person_id).exists()
    person: Any = get_user_model().objects.filter(pk=person_id, is_active=True).first()
    return person is not None and person.is_administrator


def admin_visible_space_ids(person_id: uuid.UUID) -> SpaceIds:
    """The spaces whose text the administration's pages show this administrator: those they may read, and those they
    have revealed for a while."""
    revealed = Reveal.objects.filter(by_id=person_id, ends_at__gt=timezone.now())
    return readable_space_ids(person_id) | frozenset(revealed.values_list("space_id", flat=True))


def personal_space(person_id: uuid.UUID) -> Space:
    """The person's own space; made the first time it is asked for."""
    found = Space.objects.filter(kind=Space.Kind.OWN, owner_id=person_id).first()
    return found or _make(kind=Space.Kind.OWN, owner_id=person_id)


def team_space() -> Space:
    """The space everyone reads; made the first time it is asked for."""
    found = Space.objects.filter(kind=Space.Kind.TEAM).first()
    return found or _make(kind=Space.Kind.TEAM, name="Everyone")


def get_space(person_id: uuid.UUID, space_id: uuid.UUID) -> Space:
    """The space, if this person may read it. Raises NotFoundError, the same for "not yours" and "not there"."""
    found = _readable(person_id).filter(id=space_id).first()
    if found is None:
        raise NotFoundError(_("Not found."))
    return found


def list_readable_spaces(person_id: uuid.UUID) -> list[Space]:
    """The same as rows: one's own first, then groups by name, then the team's."""
    order = {Space.Kind.OWN: 0, Space.Kind.GROUP: 1, Space.Kind.TEAM: 2}
    return sorted(_readable(person_id), key=lambda space: (order[Space.Kind(space.kind)], space.name.casefold()))


def space_by_name(person_id: uuid.UUID, name: str) -> Space:
    """The space of this name among those this person may read; the team's is also called "team". Raises NotFoundError."""
    wanted = name.strip().casefold()
    for space in _readable(person_id).order_by("kind", "name"):
        names = {
            space.name.casefold(),
            space.shown_name.casefold() if space.kind == Space.Kind.TEAM else "",
            "own" if space.owner_id else "",
            "team" if space.kind == Space.Kind.TEAM else "",
        }
        if wanted and wanted in names:
            return space
    raise NotFoundError(_("There is no space %(name)s, or it is not yours to see.") % {"name": name})


def readers(space: Space, active_people: QuerySet[M]) -> QuerySet[M]:
    """Those of `active_people` who may read `space`."""
    if space.kind == Space.Kind.OWN:
        return active_people.filter(id=space.owner_id)
    if space.kind == Space.Kind.TEAM:
        return active_people
    return active_people.filter(id__in=Membership.objects.filter(space=space).values("person_id"))


def in_spaces(rows: QuerySet[M], spaces: Iterable[uuid.UUID]) -> QuerySet[M]:
    """The `rows` that lie in `spaces`; no spaces, no rows."""
    return rows.filter(space_id__in=list(spaces))


def _readable(person_id: uuid.UUID) -> QuerySet[Space]:
    groups = Membership.objects.filter(person_id=person_id).values("space_id")
    return Space.objects.filter(
        Q(kind=Space.Kind.OWN, owner_id=person_id) | Q(kind=Space.Kind.GROUP, id__in=groups) | Q(kind=Space.Kind.TEAM)
    )


def _make(**fields: object) -> Space:
    try:
        with transaction.atomic():
            return Space.objects.create(**fields)
    except IntegrityError:  # somebody else made it in between
        fields.pop("name", None)
        return Space.objects.get(**fields)

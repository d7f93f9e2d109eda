"""The data policy of an endpoint outside Cato: which spaces' text it may receive. All decisions on it are made here.

Text belongs to the space in which it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.models import Space
from memory.spaces.access import SpaceIds


@dataclass(frozen=True, slots=True)
class DataPolicy:
    """Text of all spaces, of none, or of the listed `places`: ids of spaces as text, and PERSONAL for all personal ones."""

    ALL: ClassVar[str] = "all"
    NONE: ClassVar[str] = "none"
    LISTED: ClassVar[str] = "listed"
    PERSONAL: ClassVar[str] = "personal"

    kind: str = ALL
    places: frozenset[str] = frozenset()


def permitted_spaces(policy: DataPolicy, spaces: SpaceIds, *, personal: SpaceIds = frozenset()) -> SpaceIds:
    """Return those of `spaces` whose text may be sent; `personal` are the personal ones among them."""
    if policy.kind == policy.ALL:
        return spaces
    if policy.kind != policy.LISTED:
        return frozenset()
    takes_personal = policy.PERSONAL in policy.places
    return frozenset(id for id in spaces if (takes_personal if id in personal else str(id) in policy.places))


def validate_places(places: Iterable[str]) -> list[str]:
    """Return the places to list in a policy. Raises InvalidInputError if one of them is no shared space."""
    chosen = list(dict.fromkeys(places))
    shared = {str(id) for id in Space.objects.exclude(kind=Space.Kind.PERSONAL).values_list("id", flat=True)}
    if not set(chosen) <= shared | {DataPolicy.PERSONAL}:
        raise InvalidInputError(_("One of these spaces does not exist any more. Load the page again."))
    return chosen


def personal_among(spaces: Iterable[Space]) -> SpaceIds:
    """Return the ids of the personal spaces among these."""
    return frozenset(space.id for space in spaces if space.kind == Space.Kind.PERSONAL)


def may_receive(policy: DataPolicy, space: Space) -> bool:
    """Return whether text of this space may be sent."""
    return bool(permitted_spaces(policy, frozenset({space.id}), personal=personal_among([space])))

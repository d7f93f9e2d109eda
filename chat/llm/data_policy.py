"""The data policy of a model endpoint: which spaces' text it may receive. All decisions on it are made here.

Text belongs to the space in which it is stored: a message and its answer to the space of their thread, a passage to that
of its exchange, a standing instruction to its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memory.api import Space, SpaceIds

ALL, NONE, LISTED = "all", "none", "listed"
PERSONAL = "personal"  # in `places`: all personal spaces


@dataclass(frozen=True, slots=True)
class DataPolicy:
    """Text of all spaces, of none, or of the listed `places`: ids of spaces as text, and "personal"."""

    kind: str = ALL
    places: frozenset[str] = frozenset()


def permitted_spaces(policy: DataPolicy, spaces: SpaceIds, *, personal: SpaceIds = frozenset()) -> SpaceIds:
    """Return those of `spaces` whose text may be sent; `personal` are the personal ones among them."""
    if policy.kind == ALL:
        return spaces
    if policy.kind != LISTED:
        return frozenset()
    takes_personal = PERSONAL in policy.places
    return frozenset(id for id in spaces if (takes_personal if id in personal else str(id) in policy.places))


def personal_among(spaces: Iterable[Space]) -> SpaceIds:
    """Return the ids of the personal spaces among these."""
    return frozenset(space.id for space in spaces if space.kind == Space.Kind.PERSONAL)


def may_receive(policy: DataPolicy, space: Space) -> bool:
    """Return whether text of this space may be sent."""
    return bool(permitted_spaces(policy, frozenset({space.id}), personal=personal_among([space])))


def refusal_text(label: str, space: Space, *, is_removed: bool = False) -> str:
    """Return why the endpoint with this label is not sent text of this space, and what to do."""
    if is_removed:
        return _("%(name)s was removed by an administrator. Choose another model.") % {"name": label}
    if space.kind == Space.Kind.PERSONAL:
        return _("%(name)s may not receive text of personal threads. Choose another model.") % {"name": label}
    if space.kind == Space.Kind.TEAM:
        sentence = _("%(name)s may not receive text of the space for everyone. Choose another model.")
        return sentence % {"name": label}
    facts = {"name": label, "space": space.name}
    return _("%(name)s may not receive text of %(space)s. Choose another model.") % facts


def changed_text(label: str) -> str:
    """Return the error of an answer whose prompt may not be sent any more, because the policy was changed meanwhile."""
    sentence = _("%(name)s may no longer receive everything in this prompt. Try again, or choose another model.")
    return sentence % {"name": label}

"""Groups: spaces that some people share, made, named, joined and left."""

from __future__ import annotations

import uuid

from django.utils.translation import gettext as _

from memory.errors import BadQuery, NotFound
from memory.models import Document, Exchange, Membership, Space
from memory.text import clean_text

_LONGEST_NAME = 80
# How commands call the spaces that are not groups.
_TAKEN = ("own", "team", "everyone", "only you")


def group_for(group_id: uuid.UUID) -> Space:
    """The group. Raises NotFound."""
    group = Space.objects.filter(id=group_id, kind=Space.Kind.GROUP).first()
    if group is None:
        raise NotFound(_("There is no such group."))
    return group


def make_group(name: str) -> Space:
    """A new group with nobody in it. Raises BadQuery for a name that is empty or taken."""
    return Space.objects.create(kind=Space.Kind.GROUP, name=_free_name(name, None))


def rename_group(group: Space, name: str) -> None:
    """Call the group otherwise. Raises BadQuery."""
    Space.objects.filter(id=group.id).update(name=_free_name(name, group))


def add_to_group(group: Space, person_id: uuid.UUID) -> bool:
    """From the next request on this person reads what the group has; False where they do already."""
    return Membership.objects.get_or_create(space=group, person_id=person_id)[1]


def take_out_of_group(group: Space, person_id: uuid.UUID) -> bool:
    """From the next request on this person reads nothing of the group; False where they did not."""
    return bool(Membership.objects.filter(space=group, person_id=person_id).delete()[0])


def remove_group(group: Space) -> None:
    """Remove a group in which nothing is."""
    Space.objects.filter(id=group.id, kind=Space.Kind.GROUP).delete()


def is_empty(group: Space) -> bool:
    """Whether nothing is remembered in the group, and it has no document."""
    return not (
        Exchange.objects.filter(space=group).exists()
        or Document.objects.filter(space=group, forgotten_at=None).exists()
    )


def _free_name(name: str, of: Space | None) -> str:
    name = " ".join(clean_text(name).split())[:_LONGEST_NAME]
    if not name:
        raise BadQuery(_("Give the group a name."))
    groups = Space.objects.filter(kind=Space.Kind.GROUP)
    others = (groups.exclude(id=of.id) if of else groups).values_list("name", flat=True)
    shown = (str(kind.label).casefold() for kind in (Space.Kind.OWN, Space.Kind.TEAM))
    if name.casefold() in {*_TAKEN, *shown, *(other.casefold() for other in others)}:
        raise BadQuery(_("%(name)s is taken. Give the group another name.") % {"name": name})
    return name

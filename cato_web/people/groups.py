"""What administrators do with groups, each written into the audit log."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils.translation import gettext as _

from cato_web.people.models import User
from cato_web.people.services import note
from chat.models import Thread
from chat.news import tell
from memory import services as memory
from memory.errors import BadQuery
from memory.models import Membership, Space


@transaction.atomic
def make(name: str, *, by: User) -> Space:
    """A new group. Raises BadQuery."""
    group = memory.make_group(name)
    note(by, "made a group", f"{group.name} {group.id}")
    return group


@transaction.atomic
def rename(group: Space, name: str, *, by: User) -> None:
    """Raises BadQuery."""
    memory.rename_group(group, name)
    note(by, "renamed a group", str(group.id))


@transaction.atomic
def add(group: Space, person: User, *, by: User) -> None:
    """Let a person into the group; their open pages hear of its threads."""
    if memory.add_to_group(group, person.pk):
        note(by, "added to a group", f"{person.pk} {group.id}")
        tell([person.pk])


@transaction.atomic
def take_out(group: Space, person_id: uuid.UUID, *, by: User) -> None:
    """Take a person out of the group: they read nothing of it from the next request on."""
    if memory.take_out_of_group(group, person_id):
        note(by, "left a group" if person_id == by.pk else "took out of a group", f"{person_id} {group.id}")
        tell([person_id])


@transaction.atomic
def dissolve(group: Space, *, by: User) -> None:
    """Remove a group in which nothing is. Raises BadQuery."""
    if not memory.is_empty(group) or Thread.objects.filter(space=group).exists():
        sentence = _("%(group)s still has threads, documents or memories. Move or delete them first.")
        raise BadQuery(sentence % {"group": group.name})
    Membership.objects.filter(space=group).delete()
    memory.remove_group(group)
    note(by, "dissolved a group", str(group.id))


def groups_of(person: User) -> list[Space]:
    """The groups this person is in, by name."""
    return list(Space.objects.filter(kind=Space.Kind.GROUP, membership__person=person).order_by("name"))

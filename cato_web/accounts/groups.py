"""Create groups, and change the members of groups and projects; every change is recorded in the audit log."""

from __future__ import annotations

import uuid
from collections import defaultdict

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, User
from cato_web.accounts.services import record_audit
from chat.models import ImportJob, Thread
from chat.realtime.notifications import active_readers, notify_after_commit
from chat.services import delete_limits_of
from memory import api as memory
from memory.api import InvalidInputError, Job, Membership, Space

_ROLE_ACTIONS = {
    Membership.Role.MANAGER: AuditEntry.Action.GROUP_MADE_MANAGER,
    Membership.Role.MEMBER: AuditEntry.Action.GROUP_MADE_MEMBER,
}


def space_for(person: User, space_id: uuid.UUID) -> Space:
    """Return a space whose page the user may open: one they can read or, for administrators, any group or project.

    Raises NotFoundError.
    """
    found = Space.objects.filter(pk=space_id, kind__in=Space.WITH_MEMBERS).first() if person.is_administrator else None
    return found or memory.get_space(person.pk, space_id)


def can_edit_members(person: User, space: Space) -> bool:
    """Return whether the user may add and remove members of `space` and choose its managers."""
    return space.has_members and (person.is_administrator or memory.manages_space(person.pk, space))


def group_to_edit(person: User, group_id: uuid.UUID) -> Space:
    """Return a group or project whose members the user may edit.

    Raises NotFoundError, or PermissionDenied for members who do not manage it.
    """
    group = space_for(person, group_id)
    if not can_edit_members(person, group):
        raise PermissionDenied(_("Only its managers and administrators change who is in it. Ask one of them."))
    return group


@transaction.atomic
def create_group(name: str, *, by: User) -> Space:
    """Create a group, managed by its creator. Raises InvalidInputError."""
    group = memory.create_group(name, by=by.pk)
    record_audit(by, AuditEntry.Action.GROUP_CREATED, f"{group.name} {group.id}")
    return group


@transaction.atomic
def rename(group: Space, name: str, *, by: User) -> None:
    """Rename a group. Raises InvalidInputError."""
    memory.rename_group(group, name)
    record_audit(by, AuditEntry.Action.GROUP_RENAMED, str(group.id))
    notify_after_commit(active_readers(group))


@transaction.atomic
def add_member(group: Space, person: User, *, by: User) -> None:
    """Add a member and refresh the thread lists on their open pages."""
    if memory.add_to_group(group, person.pk, by=by.pk):
        record_audit(by, AuditEntry.Action.GROUP_MEMBER_ADDED, f"{person.pk} {group.id}")
        notify_after_commit([person.pk])


@transaction.atomic
def remove_member(group: Space, person_id: uuid.UUID, *, by: User) -> None:
    """Remove a member, who loses access with the next request."""
    if memory.remove_from_group(group, person_id, by=by.pk):
        record_audit(
            by,
            AuditEntry.Action.GROUP_LEFT if person_id == by.pk else AuditEntry.Action.GROUP_MEMBER_REMOVED,
            f"{person_id} {group.id}",
        )
        notify_after_commit([person_id])


@transaction.atomic
def set_role(group: Space, person_id: uuid.UUID, role: str, *, by: User) -> None:
    """Make a member a manager of the group, or a manager a member."""
    if memory.set_group_role(group, person_id, role, by=by.pk):
        record_audit(by, _ROLE_ACTIONS[Membership.Role(role)], f"{person_id} {group.id}")


@transaction.atomic
def delete_group(group: Space, *, by: User) -> None:
    """Delete an empty group or project. Raises InvalidInputError."""
    threads = Thread.objects.filter(space=group)
    sentence = ""
    # The exchanges of a deleted thread are forgotten when it can no longer be restored.
    if threads.filter(deleted_at=None).exists() or not (threads.exists() or memory.is_group_empty(group)):
        sentence = _("%(group)s still has threads, documents or memories. Move or delete them first.")
    elif ImportJob.objects.filter(space=group, state=Job.State.PENDING).exists():
        sentence = _("An import into %(group)s is not finished. Wait for it, or have it cancelled.")
    elif threads.exists() or not memory.is_group_erased(group):
        sentence = _("What was deleted in %(group)s is still being erased. Try again in a minute.")
    if sentence:
        raise InvalidInputError(sentence % {"group": group.name})
    Membership.objects.filter(space=group).delete()
    memory.remove_group(group)
    delete_limits_of([group.id])
    record_audit(by, AuditEntry.Action.GROUP_DELETED, str(group.id))


def with_member_names(spaces: QuerySet[Space]) -> list[tuple[Space, list[str]]]:
    """Return these groups or projects by name, each with the names of its members."""
    names: dict[uuid.UUID, list[str]] = defaultdict(list)
    members = Membership.objects.filter(space__in=spaces).order_by("person__name")
    for space_id, name in members.values_list("space_id", "person__name"):
        names[space_id].append(name)
    return [(space, names[space.id]) for space in spaces.order_by("name")]


def groups_of(person: User) -> list[Space]:
    """Return the groups of a user, by name."""
    return list(Space.objects.filter(kind=Space.Kind.GROUP, membership__person=person).order_by("name"))

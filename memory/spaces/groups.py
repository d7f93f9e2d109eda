"""Groups and projects: create, rename and remove them, and manage their members."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.utils import timezone
from django.utils.translation import gettext as _

from memory import signals
from memory.errors import InvalidFieldError, InvalidInputError, NotFoundError
from memory.models import Document, DocumentVersion, Exchange, Membership, MembershipChange, Space
from memory.spaces.access import personal_space
from memory.text import clean_name, clean_text

Change = MembershipChange.Kind
_MAX_NAME_LENGTH = 80
MAX_DESCRIPTION_LENGTH = 500
# Names that commands use for the other spaces.
_RESERVED_NAMES = ("own", "team", "everyone", "only you")


def get_group(group_id: uuid.UUID) -> Space:
    """Return the group. Raises NotFoundError."""
    group = Space.objects.filter(id=group_id, kind=Space.Kind.GROUP).first()
    if group is None:
        raise NotFoundError(_("There is no such group."))
    return group


def create_group(name: str, *, by: uuid.UUID) -> Space:
    """Create a group and make its creator a manager. Raises InvalidInputError if the name is empty or taken."""
    return _create(Space.Kind.GROUP, by, name=_unused_name(name, None))


def create_project(name: str, *, description: str = "", by: uuid.UUID) -> Space:
    """Create a project and make its creator a manager. Raises InvalidInputError if the name is empty or taken."""
    project = _create(
        Space.Kind.PROJECT, by, name=_unused_name(name, None), description=_validated_description(description)
    )
    signals.project_created.send(sender=None, by=by, project=project)
    return project


def change_project(project: Space, *, name: str, description: str, recall_mode: str) -> None:
    """Change what a project is called and from where its threads recall. Raises InvalidInputError."""
    if recall_mode not in Space.RecallMode.values:
        raise InvalidFieldError(_("Choose from where the threads of this project recall."), "recall_mode")
    Space.objects.filter(id=project.id).update(
        name=_unused_name(name, project), description=_validated_description(description), recall_mode=recall_mode
    )


def archive_project(project: Space) -> None:
    """Close the project for new contents; what it has can still be read, found and recalled."""
    Space.objects.filter(id=project.id, archived_at=None).update(archived_at=timezone.now())


def reopen_project(project: Space) -> None:
    """Open an archived project for new contents again."""
    Space.objects.filter(id=project.id).update(archived_at=None)


def rename_group(group: Space, name: str) -> None:
    """Rename the group. Raises InvalidInputError if the name is empty or taken."""
    Space.objects.filter(id=group.id).update(name=_unused_name(name, group))


def add_to_group(group: Space, person_id: uuid.UUID, *, by: uuid.UUID) -> bool:
    """Add a member, effective from their next request. Returns False if the person is already a member."""
    is_new = Membership.objects.get_or_create(space=group, person_id=person_id)[1]
    if is_new:
        _log_change(group, person_id, Change.ADDED, by=by)
    return is_new


def remove_from_group(group: Space, person_id: uuid.UUID, *, by: uuid.UUID) -> bool:
    """Remove a member, effective from their next request. Returns False if the person is not a member."""
    was_in = bool(Membership.objects.filter(space=group, person_id=person_id).delete()[0])
    if was_in:
        _log_change(group, person_id, Change.REMOVED, by=by)
    return was_in


def synchronise_memberships(person_id: uuid.UUID, groups: Iterable[Space]) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Make a person a member of these groups, and of no other by synchronisation; memberships of other origin stay.

    Return the ids of the groups that the person joined, and of those that they left.
    """
    wanted = {group.id: group for group in groups}
    rows = dict(Membership.objects.filter(person_id=person_id).values_list("space_id", "is_synchronised"))
    added = [id for id in wanted if id not in rows]
    removed = [id for id, is_synchronised in rows.items() if is_synchronised and id not in wanted]
    Membership.objects.bulk_create(Membership(space_id=id, person_id=person_id, is_synchronised=True) for id in added)
    Membership.objects.filter(person_id=person_id, space_id__in=removed).delete()
    MembershipChange.objects.bulk_create(
        MembershipChange(space_id=id, person_id=person_id, by_id=person_id, kind=kind)
        for ids, kind in ((added, Change.SYNCHRONISED_IN), (removed, Change.SYNCHRONISED_OUT))
        for id in ids
    )
    return added, removed


def set_group_role(group: Space, person_id: uuid.UUID, role: str, *, by: uuid.UUID) -> bool:
    """Change the role of a member, whom no synchronisation removes from now on. Returns False if nothing changes."""
    memberships = Membership.objects.filter(space=group, person_id=person_id).exclude(role=role)
    if role not in Membership.Role.values or not memberships.update(role=role, is_synchronised=False):
        return False
    kind = Change.MADE_MANAGER if role == Membership.Role.MANAGER else Change.MADE_MEMBER
    _log_change(group, person_id, kind, by=by)
    return True


def remove_group(group: Space) -> None:
    """Delete an empty group or project; callers check `is_group_empty` and `is_group_erased` first.

    The rows without text that remain of forgotten exchanges and documents go to the personal spaces of their owners.
    """
    if not group.has_members:
        return
    for rows in (Exchange.objects.filter(space=group), Document.objects.filter(space=group)):
        for owner_id in set(rows.values_list("owner_id", flat=True)):
            rows.filter(owner_id=owner_id).update(space=personal_space(owner_id))
    Space.objects.filter(id=group.id).delete()


def is_group_empty(group: Space) -> bool:
    """Return True if the group or project has neither exchanges nor documents, except forgotten ones."""
    return not (
        Exchange.objects.filter(space=group, forgotten_at=None, chunks=None).exists()
        or Document.objects.filter(space=group, forgotten_at=None).exists()
    )


def is_group_erased(group: Space) -> bool:
    """Return True if workers have erased all exchanges and documents of the group or project."""
    return not (
        Exchange.objects.filter(space=group, erased_at=None).exists()
        or DocumentVersion.objects.filter(document__space=group, removed_at=None).exists()
    )


def _create(kind: Space.Kind, by: uuid.UUID, **fields: str) -> Space:
    space = Space.objects.create(kind=kind, **fields)
    Membership.objects.create(space=space, person_id=by, role=Membership.Role.MANAGER)
    _log_change(space, by, Change.CREATED, by=by)
    return space


def _log_change(group: Space, person_id: uuid.UUID, kind: Change, *, by: uuid.UUID) -> None:
    MembershipChange.objects.create(space=group, person_id=person_id, by_id=by, kind=kind)


def _unused_name(name: str, renamed: Space | None) -> str:
    """Return the name for a space, which commands find by it, so no other group or project may have it."""
    name = clean_name(name)[:_MAX_NAME_LENGTH].strip()
    if not name:
        raise InvalidInputError(_("Enter a name."))
    others = Space.objects.filter(kind__in=Space.WITH_MEMBERS)
    existing_names = (others.exclude(id=renamed.id) if renamed else others).values_list("name", flat=True)
    labels = (str(kind.label).casefold() for kind in (Space.Kind.PERSONAL, Space.Kind.TEAM))
    if name.casefold() in {*_RESERVED_NAMES, *labels, *(existing.casefold() for existing in existing_names)}:
        raise InvalidInputError(_("%(name)s is taken. Choose another name.") % {"name": name})
    return name


def _validated_description(text: str) -> str:
    text = " ".join(clean_text(text).split())
    if len(text) > MAX_DESCRIPTION_LENGTH:
        sentence = _("The description has at most %(most)s characters.")
        raise InvalidFieldError(sentence % {"most": MAX_DESCRIPTION_LENGTH}, "description")
    return text

"""The page of a space: its readers, managers and membership changes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_POST

from cato_web.accounts import groups
from cato_web.accounts.models import User
from cato_web.accounts.views import AuthenticatedRequest
from memory import api as memory
from memory.api import Membership, MembershipChange, Space, parse_uuid

_CHANGES = 30
_SENTENCES = {
    MembershipChange.Kind.ADDED: gettext_noop("%(by)s added %(name)s."),
    MembershipChange.Kind.REMOVED: gettext_noop("%(by)s removed %(name)s."),
    MembershipChange.Kind.MADE_MANAGER: gettext_noop("%(by)s made %(name)s a manager."),
    MembershipChange.Kind.MADE_MEMBER: gettext_noop("%(by)s made %(name)s a member."),
}
_OWN_SENTENCES = {
    MembershipChange.Kind.CREATED: gettext_noop("%(name)s created the group."),
    MembershipChange.Kind.ADDED: gettext_noop("%(name)s joined by their own decision."),
    MembershipChange.Kind.REMOVED: gettext_noop("%(name)s left."),
    MembershipChange.Kind.MADE_MANAGER: gettext_noop("%(name)s became a manager by their own decision."),
    MembershipChange.Kind.MADE_MEMBER: gettext_noop("%(name)s is no longer a manager."),
}


@dataclass(frozen=True, slots=True)
class MemberRow:
    id: uuid.UUID
    name: str
    is_active: bool
    is_manager: bool
    is_you: bool


@dataclass(frozen=True, slots=True)
class ChangeRow:
    at: datetime
    text: str


@require_GET
def space(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Show the readers and managers of a space, with the controls that the user may use."""
    found = groups.space_for(request.user, space_id)
    members = _members(found, request.user)
    can_edit = groups.can_edit_members(request.user, found)
    context = {
        "section": "space",
        "space": found,
        "name": found.shown_name,
        "members": members,
        "has_manager": any(member.is_manager and member.is_active for member in members),
        "is_member": any(member.is_you for member in members),
        "can_edit": can_edit,
        "others": _others(members) if can_edit else [],
        "changes": _changes(found),
    }
    return render(request, "people/space.html", context)


@require_POST
def change_members(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Add or remove a member or change their role, depending on the field `change`."""
    group = groups.group_to_edit(request.user, space_id)
    person = get_object_or_404(User, id=_id_in(request), left_at=None)
    change = request.POST.get("change", "")
    if change == "add":
        groups.add_member(group, person, by=request.user)
        done = _("%(name)s added to %(group)s.")
    elif change == "remove":
        groups.remove_member(group, person.pk, by=request.user)
        done = _("%(name)s removed from %(group)s.")
    else:
        groups.set_role(group, person.pk, change, by=request.user)
        done = _("Saved.")
    messages.success(request, done % {"name": person.name, "group": group.name})
    return redirect("space", group.pk)


@require_POST
def leave_group(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Leave a group."""
    group = get_object_or_404(Space, pk=space_id, kind=Space.Kind.GROUP, membership__person=request.user)
    groups.remove_member(group, request.user.pk, by=request.user)
    messages.success(request, _("You are not in %(group)s any more.") % {"group": group.name})
    return redirect("settings")


def _members(found: Space, you: User) -> list[MemberRow]:
    people = memory.readers(found, User.objects.filter(left_at=None)).order_by("name", "id")
    if found.kind == Space.Kind.GROUP:
        in_role = Membership.objects.filter(space=found, role=Membership.Role.MANAGER)
        managers = set(in_role.values_list("person_id", flat=True))
    elif found.kind == Space.Kind.TEAM:
        people = people.filter(is_active=True)
        managers = {person.pk for person in people if person.is_administrator}
    else:
        managers = {person.pk for person in people}
    return [MemberRow(p.pk, p.name, p.is_active, p.pk in managers, p.pk == you.pk) for p in people]


def _others(members: Sequence[MemberRow]) -> list[tuple[uuid.UUID, str]]:
    people = User.objects.filter(is_active=True).exclude(pk__in=[member.id for member in members])
    return list(people.order_by("name", "id").values_list("pk", "name"))


def _changes(found: Space) -> list[ChangeRow]:
    """Describe the latest membership changes, newest first."""
    rows = MembershipChange.objects.filter(space=found).select_related("person", "by").order_by("-at", "-pk")
    shown = []
    for row in rows[:_CHANGES]:
        sentences = _OWN_SENTENCES if row.by_id == row.person_id else _SENTENCES
        sentence = _(sentences[MembershipChange.Kind(row.kind)])
        shown.append(ChangeRow(row.at, sentence % {"by": row.by, "name": row.person}))
    return shown


def _id_in(request: AuthenticatedRequest) -> uuid.UUID:
    return parse_uuid(request.POST.get("person", "")) or uuid.UUID(int=0)

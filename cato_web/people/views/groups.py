"""The administrator's page of groups: who is in which; and leaving one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.people import groups
from cato_web.people.models import User
from cato_web.people.requests import PeoplePageRequest
from memory import services as memory
from memory.errors import BadQuery, NotFound
from memory.guards import administrators_only
from memory.models import Membership, Space


@dataclass(frozen=True, slots=True)
class MemberRow:
    id: uuid.UUID
    name: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    id: uuid.UUID
    name: str
    members: Sequence[MemberRow]
    others: Sequence[MemberRow]
    change_url: str
    members_url: str


@administrators_only
@require_http_methods(["GET", "POST"])
def admin_groups(request: PeoplePageRequest) -> HttpResponse:
    """Every group with who is in it; by POST one more."""
    if request.method == "POST":
        return _done(request, lambda: _made(groups.make(request.POST.get("name", ""), by=request.user)))
    return render(request, "people/admin_groups.html", {"section": "admin", "tab": "groups", "groups": _rows()})


@administrators_only
@require_POST
def change_group(request: PeoplePageRequest, group_id: uuid.UUID) -> HttpResponse:
    """Rename it, or dissolve it."""
    group = memory.group_for(group_id)

    def change() -> str:
        if request.POST.get("dissolve") == "yes":
            groups.dissolve(group, by=request.user)
            return _("%(group)s is dissolved.") % {"group": group.name}
        groups.rename(group, request.POST.get("name", ""), by=request.user)
        return _("Renamed.")

    return _done(request, change)


@administrators_only
@require_POST
def change_members(request: PeoplePageRequest, group_id: uuid.UUID) -> HttpResponse:
    """Let a person in, or take one out."""
    group = memory.group_for(group_id)
    person = get_object_or_404(User, id=_id_in(request), left_at=None)
    if request.POST.get("out") == "yes":
        groups.take_out(group, person.pk, by=request.user)
        said = _("%(name)s reads nothing of %(group)s any more.")
    else:
        groups.add(group, person, by=request.user)
        said = _("%(name)s reads what %(group)s has.")
    messages.success(request, said % {"name": person.name, "group": group.name})
    return redirect("admin_groups")


@require_POST
def leave_group(request: PeoplePageRequest, group_id: uuid.UUID) -> HttpResponse:
    """Leave a group of one's own accord."""
    group = next((group for group in groups.groups_of(request.user) if group.id == group_id), None)
    if group is None:
        raise NotFound(_("There is nothing here, or it is not yours to see."))
    groups.take_out(group, request.user.pk, by=request.user)
    messages.success(request, _("You are not in %(group)s any more.") % {"group": group.name})
    return redirect("settings")


def _made(group: Space) -> str:
    return _("%(group)s is there.") % {"group": group.name}


def _done(request: PeoplePageRequest, change: Callable[[], str]) -> HttpResponse:
    try:
        messages.success(request, change())
    except BadQuery as error:
        messages.error(request, str(error))
    return redirect("admin_groups")


def _rows() -> list[GroupRow]:
    people = [MemberRow(p.pk, p.name, p.is_active) for p in User.objects.filter(left_at=None).order_by("name", "id")]
    members: dict[uuid.UUID, set[uuid.UUID]] = {}
    for space_id, person_id in Membership.objects.values_list("space_id", "person_id"):
        members.setdefault(space_id, set()).add(person_id)
    return [
        GroupRow(
            id=group.id,
            name=group.name,
            members=[row for row in people if row.id in members.get(group.id, ())],
            others=[row for row in people if row.is_active and row.id not in members.get(group.id, ())],
            change_url=reverse("change_group", args=[group.id]),
            members_url=reverse("change_members", args=[group.id]),
        )
        for group in Space.objects.filter(kind=Space.Kind.GROUP).order_by("name")
    ]


def _id_in(request: PeoplePageRequest) -> uuid.UUID:
    try:
        return uuid.UUID(request.POST.get("person", ""))
    except ValueError:
        return uuid.UUID(int=0)

"""The administrators' page of groups and their members."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import groups
from cato_web.accounts.views import AuthenticatedRequest
from memory import api as memory
from memory.api import InvalidInputError, Space, admin_required


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group or project with the names of its members."""

    id: uuid.UUID
    name: str
    members: Sequence[str]


@admin_required
@require_http_methods(["GET", "POST"])
def admin_groups(request: AuthenticatedRequest) -> HttpResponse:
    """List all groups and projects with their members, or create a group."""

    def create() -> str:
        group = groups.create_group(request.POST.get("name", ""), by=request.user)
        return _("%(group)s is created, and you manage it.") % {"group": group.name}

    if request.method == "POST":
        return _apply_change(request, create)
    rows = {"groups": _rows(Space.Kind.GROUP), "projects": _rows(Space.Kind.PROJECT)}
    context = {"section": "admin", "tab": "groups", **rows}
    return render(request, "people/admin_groups.html", context)


@admin_required
@require_POST
def change_group(request: AuthenticatedRequest, group_id: uuid.UUID) -> HttpResponse:
    """Rename or delete a group."""
    group = memory.get_group(group_id)

    def change() -> str:
        if request.POST.get("dissolve") == "yes":
            groups.delete_group(group, by=request.user)
            return _("Group %(group)s deleted.") % {"group": group.name}
        groups.rename(group, request.POST.get("name", ""), by=request.user)
        return _("Renamed.")

    return _apply_change(request, change)


def _apply_change(request: AuthenticatedRequest, change: Callable[[], str]) -> HttpResponse:
    try:
        messages.success(request, change())
    except InvalidInputError as error:
        messages.error(request, str(error))
    return redirect("admin_groups")


def _rows(kind: Space.Kind) -> list[GroupRow]:
    found = groups.with_member_names(Space.objects.filter(kind=kind))
    return [GroupRow(space.id, space.name, names) for space, names in found]

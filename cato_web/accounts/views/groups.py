"""The administrators' page of groups and their members."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from cato_web.accounts import groups
from cato_web.accounts.views import AuthenticatedRequest
from memory import api as memory
from memory.api import InvalidInputError, Space, admin_required

_CONTEXT: dict[str, object] = {"section": "admin", "tab": "groups"}


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
    error = ""
    if request.method == "POST":
        try:
            group = groups.create_group(request.POST.get("name", ""), by=request.user)
        except InvalidInputError as refused:
            error = str(refused)
        else:
            messages.success(request, _("%(group)s is created, and you manage it.") % {"group": group.name})
            return redirect("admin_groups")
    rows = {"groups": _rows(Space.Kind.GROUP), "projects": _rows(Space.Kind.PROJECT)}
    form = {"name": request.POST.get("name", ""), "error": error}
    return render(request, "people/admin_groups.html", _CONTEXT | rows | form, status=422 if error else 200)


@admin_required
@require_http_methods(["GET", "POST"])
def change_group(request: AuthenticatedRequest, group_id: uuid.UUID) -> HttpResponse:
    """Show the form that renames or deletes a group; POST does it."""
    group = memory.get_group(group_id)
    error = ""
    if request.method == "POST":
        is_deletion = request.POST.get("dissolve") == "yes"
        try:
            if is_deletion:
                groups.delete_group(group, by=request.user)
                done = _("Group %(group)s deleted.") % {"group": group.name}
            else:
                groups.rename(group, request.POST.get("name", ""), by=request.user)
                done = _("Renamed.")
        except InvalidInputError as refused:
            if is_deletion:
                messages.error(request, str(refused))
                return redirect("change_group", group.pk)
            error = str(refused)
        else:
            messages.success(request, done)
            return redirect("admin_groups")
    form = {"group": group.name, "name": request.POST.get("name", group.name), "error": error}
    return render(request, "people/change_group.html", _CONTEXT | form, status=422 if error else 200)


def _rows(kind: Space.Kind) -> list[GroupRow]:
    found = groups.with_member_names(Space.objects.filter(kind=kind))
    return [GroupRow(space.id, space.name, names) for space, names in found]

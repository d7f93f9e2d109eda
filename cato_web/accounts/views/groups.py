"""The administrators' page of groups and their members."""

from __future__ import annotations

import uuid
from collections import defaultdict
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
from memory.api import InvalidInputError, Membership, Space, admin_required


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group with the names of its members."""

    id: uuid.UUID
    name: str
    members: Sequence[str]


@admin_required
@require_http_methods(["GET", "POST"])
def admin_groups(request: AuthenticatedRequest) -> HttpResponse:
    """List all groups with their members, or create one."""
    if request.method == "POST":
        return _apply_change(
            request, lambda: _created_text(groups.create_group(request.POST.get("name", ""), by=request.user))
        )
    return render(request, "people/admin_groups.html", {"section": "admin", "tab": "groups", "groups": _rows()})


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


def _created_text(group: Space) -> str:
    return _("%(group)s is created, and you manage it.") % {"group": group.name}


def _apply_change(request: AuthenticatedRequest, change: Callable[[], str]) -> HttpResponse:
    try:
        messages.success(request, change())
    except InvalidInputError as error:
        messages.error(request, str(error))
    return redirect("admin_groups")


def _rows() -> list[GroupRow]:
    names: dict[uuid.UUID, list[str]] = defaultdict(list)
    for space_id, name in Membership.objects.order_by("person__name").values_list("space_id", "person__name"):
        names[space_id].append(name)
    rows = Space.objects.filter(kind=Space.Kind.GROUP).order_by("name")
    return [GroupRow(group.id, group.name, names[group.id]) for group in rows]

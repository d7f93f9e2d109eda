"""The administrators' page of groups and their members."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import django_filters as filters
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from cato_web.accounts import groups
from cato_web.accounts.views import AuthenticatedRequest
from memory import api as memory
from memory.api import InvalidInputError, ListFilterSet, LongPaginator, Space, admin_required

_PAGE_SIZE = 20
_TAB: dict[str, object] = {"section": "admin", "tab": "groups"}


class GroupSelection(ListFilterSet):
    """Filters of the list."""

    q = filters.CharFilter(method="filter_text", label=gettext_lazy("Name"))

    def filter_text(self, rows: QuerySet[Space], name: str, value: str) -> QuerySet[Space]:
        """Return the groups and projects whose names contain the text."""
        return rows.filter(memory.contains("name", value))


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group or project with the names of its members."""

    id: uuid.UUID
    name: str
    members: Sequence[str]


@admin_required
@require_http_methods(["GET", "POST"])
def admin_groups(request: AuthenticatedRequest) -> HttpResponse:
    """List the groups, then the projects, by pages, with their members, filtered by name, or create a group."""
    error = ""
    if request.method == "POST":
        try:
            group = groups.create_group(request.POST.get("name", ""), by=request.user)
        except InvalidInputError as refused:
            error = str(refused)
        else:
            messages.success(request, _("%(group)s is created, and you manage it.") % {"group": group.name})
            return redirect("admin_groups")
    spaces = Space.objects.filter(kind__in=Space.WITH_MEMBERS)
    selection = GroupSelection(request.GET, spaces.order_by("kind", "name", "id"))  # "group" sorts before "project"
    page = LongPaginator(selection.qs, _PAGE_SIZE, is_by_name=True).get_page(request.GET.get("page"))
    context = {
        "selection": selection,
        "page": page,
        "groups": _rows(page, Space.Kind.GROUP),
        "projects": _rows(page, Space.Kind.PROJECT),
        "name": request.POST.get("name", ""),
        "error": error,
    }
    return render(request, "people/admin_groups.html", _TAB | context, status=422 if error else 200)


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
    return render(request, "people/change_group.html", _TAB | form, status=422 if error else 200)


def _rows(page: Iterable[Space], kind: Space.Kind) -> list[GroupRow]:
    spaces = Space.objects.filter(pk__in=[space.pk for space in page if space.kind == kind])
    return [GroupRow(space.id, space.name, names) for space, names in groups.with_member_names(spaces)]

"""The page of a space: its readers, managers, instructions and membership changes."""

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
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cato_web.accounts import groups
from cato_web.accounts.models import User
from cato_web.accounts.views import AuthenticatedRequest, posted_id
from cato_web.usage.rows import usage_rows, usage_total
from chat.llm import endpoint
from chat.llm.choices import set_space_model, space_model
from chat.rows.instructions import space_section
from chat.rows.space_contents import space_contents
from chat.rows.usage import limit_row
from chat.usage.counting import month_start
from chat.usage.limits import limit_states
from chat.usage.reports import UsageFilter
from memory import api as memory
from memory.api import InvalidFieldError, InvalidInputError, Membership, MembershipChange, Space

_MAX_CHANGES = 30
_SENTENCES = {
    MembershipChange.Kind.ADDED: gettext_noop("%(by)s added %(name)s."),
    MembershipChange.Kind.REMOVED: gettext_noop("%(by)s removed %(name)s."),
    MembershipChange.Kind.MADE_MANAGER: gettext_noop("%(by)s made %(name)s a manager."),
    MembershipChange.Kind.MADE_MEMBER: gettext_noop("%(by)s made %(name)s a member."),
}
_OWN_SENTENCES = {
    MembershipChange.Kind.CREATED: gettext_noop("%(name)s created it."),
    MembershipChange.Kind.ADDED: gettext_noop("%(name)s joined by their own decision."),
    MembershipChange.Kind.REMOVED: gettext_noop("%(name)s left."),
    MembershipChange.Kind.MADE_MANAGER: gettext_noop("%(name)s became a manager by their own decision."),
    MembershipChange.Kind.MADE_MEMBER: gettext_noop("%(name)s is no longer a manager."),
    MembershipChange.Kind.SYNCHRONISED_IN: gettext_noop("The identity provider added %(name)s."),
    MembershipChange.Kind.SYNCHRONISED_OUT: gettext_noop("The identity provider removed %(name)s."),
}


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A user who can read the space."""

    id: uuid.UUID
    name: str
    is_active: bool
    is_manager: bool
    is_you: bool


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A membership change as a sentence."""

    at: datetime
    text: str


@require_GET
def space(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Show the readers and managers of a space, with the controls that the user may use, and what a project contains."""
    return render_space(request, groups.space_for(request.user, space_id))


def render_space(
    request: AuthenticatedRequest, space_row: Space, *, error: InvalidInputError | None = None
) -> HttpResponse:
    """Return the page of a space; `error` is about the posted settings of a project, which their form keeps."""
    members = _members(space_row, request.user)
    can_edit = groups.can_edit_members(request.user, space_row)
    context = {
        "section": "space",
        "space": space_row,
        "name": space_row.display_name,
        "members": members,
        "has_manager": any(member.is_manager and member.is_active for member in members),
        "is_member": any(member.is_you for member in members),
        "can_edit": can_edit,
        "others": _non_members(members) if can_edit else [],
        "changes": _changes(space_row),
    }
    if context["is_member"]:
        instructions, is_managed = space_section(request.user.pk, space_row)
        context |= {
            "instructions": instructions,
            "choices": [space_row] if is_managed and space_row.archived_at is None else [],
        }
    if can_edit:
        context |= _usage(space_row) | {
            "has_model": endpoint.of_request(request) is not None,
            "model": space_model(space_row.pk),
        }
    if not space_row.is_project:
        return render(request, "people/space.html", context)
    manages = memory.manages_space(request.user.pk, space_row)
    context |= {
        "section": "projects",
        "contents": space_contents(request.user.pk, space_row),
        "can_change": manages,
        "recall_modes": Space.RecallMode.choices,
        "max_description": memory.MAX_DESCRIPTION_LENGTH,
        "errors": project_errors(error),
    }
    for field in ("name", "description", "recall_mode"):
        context[f"posted_{field}"] = (
            request.POST[field] if error and field in request.POST else getattr(space_row, field)
        )
    return render(request, "people/project.html", context, status=422 if error else 200)


def _usage(space_row: Space) -> dict[str, object]:
    """Return the usage of a group or project in this month, and its limits."""
    of, month = UsageFilter(space_id=space_row.pk), month_start()
    return {
        "usage": usage_rows("model", month, of),
        "usage_total": usage_total(month, of),
        "limits": [limit_row(state) for state in limit_states(space=space_row)],
    }


@require_POST
def change_members(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Add or remove a member or change their role, depending on the field `change`."""
    group = groups.group_to_edit(request.user, space_id)
    person = get_object_or_404(User, id=posted_id(request, "person"), left_at=None)
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
    if change == "remove" and person == request.user and not request.user.is_administrator:
        return redirect("projects" if group.is_project else "settings")
    return redirect("space", group.pk)


@require_POST
def change_model(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Set the model of new threads in a group or project; empty: the default of who writes."""
    group = groups.group_to_edit(request.user, space_id)
    try:
        set_space_model(group, memory.clean_text(request.POST.get("model", "")))
    except InvalidInputError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Saved."))
    return redirect("space", group.pk)


@require_http_methods(["GET", "POST"])
def leave_group(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then leave a group or project."""
    group = get_object_or_404(Space, pk=space_id, kind__in=Space.WITH_MEMBERS, membership__person=request.user)
    if request.method == "GET":
        others = Membership.objects.filter(space=group, person__is_active=True).exclude(person=request.user)
        context = {
            "section": "space",
            "space": group,
            "is_last": not others.exists(),
            "is_last_manager": not others.filter(role=Membership.Role.MANAGER).exists(),
        }
        return render(request, "people/leave_group.html", context)
    groups.remove_member(group, request.user.pk, by=request.user)
    messages.success(request, _("You are not in %(group)s any more.") % {"group": group.name})
    return redirect("projects" if group.is_project else "settings")


def _members(space_row: Space, viewer: User) -> list[MemberRow]:
    readers = memory.readers(space_row, User.objects.filter(left_at=None)).order_by("name", "id")
    if space_row.has_members:
        manager_rows = Membership.objects.filter(space=space_row, role=Membership.Role.MANAGER)
        managers = set(manager_rows.values_list("person_id", flat=True))
    elif space_row.kind == Space.Kind.TEAM:
        readers = readers.filter(is_active=True)
        managers = {person.pk for person in readers if person.is_administrator}
    else:
        managers = {person.pk for person in readers}
    return [MemberRow(p.pk, p.name, p.is_active, p.pk in managers, p.pk == viewer.pk) for p in readers]


def _non_members(members: Sequence[MemberRow]) -> list[tuple[uuid.UUID, str]]:
    users = User.objects.filter(is_active=True).exclude(pk__in=[member.id for member in members])
    return list(users.order_by("name", "id").values_list("pk", "name"))


def _changes(space_row: Space) -> list[ChangeRow]:
    """Describe the latest membership changes, newest first."""
    rows = MembershipChange.objects.filter(space=space_row).select_related("person", "by").order_by("-at", "-pk")
    changes = []
    for row in rows[:_MAX_CHANGES]:
        sentences = _OWN_SENTENCES if row.by_id == row.person_id else _SENTENCES
        sentence = _(sentences[MembershipChange.Kind(row.kind)])
        changes.append(ChangeRow(row.at, sentence % {"by": row.by, "name": row.person}))
    return changes


def project_errors(error: InvalidInputError | None) -> dict[str, str]:
    """Return the error of each field of the form of a project, "" for those that have none."""
    field = error.field if isinstance(error, InvalidFieldError) else "name"
    return dict.fromkeys(("name", "description", "recall_mode"), "") | ({field: str(error)} if error else {})

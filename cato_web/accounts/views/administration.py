"""The administrators' page of users and invitations.

The address of an action has that of the page in `next`, so that the same people are listed after it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

import django_filters as filters
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import roles, services
from cato_web.accounts.export import archive
from cato_web.accounts.export.responses import zip_response
from cato_web.accounts.forms.settings import InvitationForm
from cato_web.accounts.models import AuditEntry, OneTimeLink, User
from cato_web.accounts.second_factor import services as second_factor
from cato_web.accounts.views import AuthenticatedRequest, shown_once
from cato_web.accounts.views.auth import safe_redirect_target
from memory import api as memory
from memory.api import ListFilterSet, LongPaginator, admin_required

_PAGE_SIZE = 50


class PeopleSelection(ListFilterSet):
    """Filters of the list."""

    q = filters.CharFilter(method="filter_text", label=gettext_lazy("Name or email address"))
    role = filters.ChoiceFilter(
        choices=User.Role.choices, empty_label=gettext_lazy("Any role"), label=gettext_lazy("Role")
    )
    state = filters.ChoiceFilter(
        choices=[(True, gettext_lazy("Active")), (False, gettext_lazy("Deactivated"))],
        field_name="is_active",
        empty_label=gettext_lazy("Any state"),
        label=gettext_lazy("State"),
    )

    common = ("q", "role", "state")

    def filter_text(self, rows: QuerySet[User], name: str, value: str) -> QuerySet[User]:
        """Return the people whose name or address contains the text."""
        return rows.filter(memory.contains("name", value) | memory.contains("email", value))


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A user with the URLs of their actions."""

    id: uuid.UUID
    name: str
    email: str
    role: str
    joined_at: datetime
    is_active: bool
    is_administrator: bool
    active_url: str
    reset_url: str
    role_url: str
    second_factor_url: str
    exchanges_url: str
    documents_url: str
    export_url: str
    is_you: bool


@admin_required
@require_http_methods(["GET", "POST"])
def people(request: AuthenticatedRequest) -> HttpResponse:
    """List the users, and create an invitation link."""
    form = InvitationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        token = services.create_invitation(by=request.user, role=form.cleaned_data["role"])
        shown_once.keep(request, "invitation", request.build_absolute_uri(reverse("join", args=[token])))
        return redirect(f"{reverse('admin_people')}#invitation")
    return _page(request, form)


@admin_required
@require_POST
def reset_link(request: AuthenticatedRequest, person_id: uuid.UUID) -> HttpResponse:
    """Create a link with which the user sets a new password; the list of people shows it once."""
    person = get_object_or_404(User, pk=person_id, is_active=True)
    token = services.reset_link(person, by=request.user)
    link = request.build_absolute_uri(reverse("password_reset", args=[token]))
    shown_once.keep(request, "reset", {"name": person.name, "link": link})
    return _back(request)


@admin_required
@require_POST
def export(request: AuthenticatedRequest, person_id: uuid.UUID) -> HttpResponseBase:
    """Return an archive of a user's data, limited to revealed spaces, once their personal space is revealed."""
    person = get_object_or_404(User, pk=person_id, left_at=None)
    space = memory.personal_space(person.pk)
    if space.pk not in memory.admin_visible_space_ids(request.user.pk):
        sentence = _("This export contains %(name)s's personal space. Request access first.")
        messages.error(request, sentence % {"name": person.name})
        return redirect(f"{reverse('reveal', args=[space.pk])}?next={reverse('admin_people')}")
    services.record_audit(request.user, AuditEntry.Action.PERSON_EXPORTED, str(person.pk))
    # Sent while it is written: access to a space can end, so nothing of it is stored for later.
    return zip_response(archive.stream_for(person, by=request.user))


@admin_required
@require_POST
def set_role(request: AuthenticatedRequest, person_id: uuid.UUID) -> HttpResponse:
    """Change the role of another user."""
    person = get_object_or_404(User, pk=person_id, left_at=None)
    role = request.POST.get("role", "")
    if person.pk == request.user.pk:
        messages.error(request, _("You cannot change your own role."))
    elif role in User.Role.values:
        text = _("%(name)s is a member now.")
        if role == User.Role.ADMINISTRATOR:
            text = _("%(name)s is an administrator now.")
        try:
            roles.set_role(person, role, by=request.user)
            messages.success(request, text % {"name": person.name})
        except roles.LastAdministratorError as error:
            messages.error(request, str(error))
    return _back(request)


@admin_required
@require_POST
def set_active(request: AuthenticatedRequest, person_id: uuid.UUID) -> HttpResponse:
    """Activate or deactivate another user."""
    if person_id == request.user.pk:
        messages.error(request, _("You cannot deactivate your own account."))
        return _back(request)
    try:
        roles.set_active(person_id, request.POST.get("active") == "yes", by=request.user)
    except roles.LastAdministratorError as error:
        messages.error(request, str(error))
    return _back(request)


@admin_required
@require_POST
def remove_second_factor(request: AuthenticatedRequest, person_id: uuid.UUID) -> HttpResponse:
    """Remove the second factor of another user, who has lost it."""
    person = get_object_or_404(User, pk=person_id, left_at=None)
    if person.pk == request.user.pk:
        messages.error(request, _("Remove your own second factor in your settings."))
    elif second_factor.remove_second_factor(person, by=request.user):
        text = _("%(name)s has no second factor any more and is signed out everywhere.")
        messages.success(request, text % {"name": person.name})
    else:
        messages.error(request, _("%(name)s has no second factor.") % {"name": person.name})
    return _back(request)


@admin_required
@require_POST
def revoke_link(request: AuthenticatedRequest, link_id: int) -> HttpResponse:
    """Revoke an invitation or password link."""
    if services.revoke_link(link_id, by=request.user):
        messages.success(request, _("The link is revoked."))
    else:
        messages.error(request, _("This link was already used or revoked, or has expired."))
    return _back(request)


def _back(request: AuthenticatedRequest) -> HttpResponse:
    """Return to the people that were listed."""
    return redirect(safe_redirect_target(request.GET.get("next") or reverse("admin_people")))


def _page(request: AuthenticatedRequest, form: InvitationForm) -> HttpResponse:
    """Show the people that were chosen, and a link that was just created."""
    selection = PeopleSelection(request.GET, User.objects.filter(left_at=None).order_by("name", "id"))
    page = LongPaginator(selection.qs, _PAGE_SIZE, is_by_name=True).get_page(request.GET.get("page"))
    shown = reverse("admin_people", query=request.GET)
    protected = second_factor.ids_with_second_factor()
    rows = [
        PersonRow(
            id=p.pk,
            name=p.name,
            email=p.email,
            role=p.get_role_display(),
            joined_at=p.joined_at,
            is_active=p.is_active,
            is_administrator=p.is_administrator,
            active_url=reverse("set_user_active", args=[p.id], query={"next": shown}),
            reset_url=reverse("create_reset_link", args=[p.id], query={"next": shown}) if p.is_active else "",
            role_url=reverse("set_role", args=[p.id], query={"next": shown}),
            second_factor_url=(
                reverse("remove_second_factor", args=[p.id], query={"next": shown}) if p.pk in protected else ""
            ),
            exchanges_url=f"{reverse('admin_exchanges')}?person={p.pk}",
            documents_url=f"{reverse('admin_documents')}?person={p.pk}",
            export_url=reverse("export_person", args=[p.pk]),
            is_you=p.pk == request.user.pk,
        )
        for p in page
    ]
    context = {
        "section": "admin",
        "tab": "people",
        "selection": selection,
        "page": page,
        "people": rows,
        "invitation": shown_once.take(request, "invitation"),
        "reset": shown_once.take(request, "reset"),
        "form": form,
        "days": services.INVITATION_DAYS,
        "roles": User.Role.choices,
        "links": [
            _link_row(link) for link in services.open_links().select_related("created_by", "person").order_by("pk")
        ],
    }
    return render(request, "people/admin_people.html", context)


def _link_row(link: OneTimeLink) -> dict[str, object]:
    invitation = _("Invitation as %(role)s") % {"role": link.get_role_display()}
    return {
        "what": _("Password link for %(name)s") % {"name": link.person} if link.person else invitation,
        "created_by": link.created_by,
        "expires_at": link.expires_at,
        "revoke_url": reverse("revoke_link", args=[link.pk]),
    }

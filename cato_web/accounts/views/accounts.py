"""What a person chooses for themselves, where they are signed in, and all of theirs as a file."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import login_sessions, model_choices, openid, services
from cato_web.accounts.forms import PasswordForm, PreferencesForm, TokenForm
from cato_web.accounts.groups import groups_of
from cato_web.accounts.models import AuditEntry
from cato_web.accounts.requests import PeoplePageRequest
from cato_web.accounts.token_rows import token_rows
from cato_web.accounts.views.archives import zip_of
from memory.administration import reveals
from memory.spaces import access
from memory.text import parse_uuid

_REVEALS = 20


@dataclass(frozen=True, slots=True)
class SignInRow:
    id: uuid.UUID
    browser: str
    since: datetime
    seen_at: datetime
    is_this: bool


@require_http_methods(["GET", "POST"])
def settings_page(request: PeoplePageRequest) -> HttpResponse:
    form = PreferencesForm(request.POST or None, instance=request.user, offer=model_choices.available_models())
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved."))
        return redirect("settings")
    return render_settings(request, form=form, status=422 if form.errors else 200)


def render_settings(
    request: PeoplePageRequest,
    *,
    form: PreferencesForm | None = None,
    token_form: TokenForm | None = None,
    token: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page of settings with these forms, or as it is; `token` was just made and is shown this once."""
    login_sessions.touch(request, request.user)
    context = {
        "section": "settings",
        "form": form or PreferencesForm(instance=request.user, offer=model_choices.available_models()),
        "tokens": token_rows(request.user) if settings.CATO.api.enabled else None,
        "token_form": token_form or TokenForm(),
        "token": token,
        "sign_ins": _rows(request),
        "groups": groups_of(request.user),
        "reveals": reveals.reveals_of(access.personal_space(request.user.pk))[:_REVEALS],
        "has_password": request.user.has_usable_password(),
        "openid": openid.name(),
        "has_identity": request.user.identities.exists(),
    }
    return render(request, "people/settings.html", context, status=status)


@require_POST
def set_notifications(request: PeoplePageRequest) -> HttpResponse:
    """Tell of answers that end while this person is elsewhere, or no longer."""
    request.user.is_notified = request.POST.get("notify") == "yes"
    request.user.save(update_fields=["is_notified"])
    said = _("Notifications on.") if request.user.is_notified else _("Notifications off.")
    messages.success(request, said)
    return redirect("settings")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: PeoplePageRequest) -> HttpResponse:
    if not request.user.has_usable_password():
        messages.error(
            request, _("You have no password to change. An administrator can make you a link that sets one.")
        )
        return redirect("settings")
    form = PasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.change_password(request.user, form.cleaned_data["new"])
        login_sessions.rotate(request, request.user)
        messages.success(request, _("Your password is changed. Other sign-ins have ended."))
        return redirect("settings")
    context = {"section": "settings", "form": form}
    return render(request, "people/password.html", context, status=422 if form.errors else 200)


@require_POST
def revoke_login_session(request: PeoplePageRequest) -> HttpResponse:
    """End the sign-in named, or all but this one."""
    which = request.POST.get("sign_in", "")
    if which == "others":
        services.sign_out_elsewhere(request.user)
        ended = login_sessions.rotate(request, request.user)
        said = _("Signed out everywhere else: %(count)s ended.") if ended else _("No other sessions.")
        messages.success(request, said % {"count": ended})
    elif (id := parse_uuid(which)) and login_sessions.revoke(request.user, id):
        messages.success(request, _("Signed out."))
    else:
        messages.error(request, _("Already signed out."))
    return redirect("settings")


@require_POST
def export_my_data(request: PeoplePageRequest) -> StreamingHttpResponse:
    """Everything of this person as a zip file, written as it is sent."""
    services.record_audit(request.user, AuditEntry.Action.ACCOUNT_EXPORTED, str(request.user.pk))
    return zip_of(request.user, by=request.user)


def _rows(request: PeoplePageRequest) -> list[SignInRow]:
    this = request.session.session_key
    rows = [
        SignInRow(s.id, s.browser, s.since, s.seen_at, s.session_id == this)
        for s in login_sessions.listed(request.user)
    ]
    return sorted(rows, key=lambda row: not row.is_this)

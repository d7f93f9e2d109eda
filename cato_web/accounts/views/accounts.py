"""The settings page: preferences, password, login sessions, API tokens and webhooks."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import directory, login_sessions, model_choices, openid, services
from cato_web.accounts.forms.settings import PasswordForm, PreferencesForm, TokenForm
from cato_web.accounts.groups import groups_of
from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.second_factor.services import has_second_factor
from cato_web.accounts.views import AuthenticatedRequest, posted_id, shown_once
from cato_web.accounts.views.auth import TOO_MANY, check_code_rate
from cato_web.accounts.views.webhooks import webhook_rows
from cato_web.oauth.addresses import host_of
from memory import api as memory

_REVEALS = 20


@dataclass(frozen=True, slots=True)
class LoginSessionRow:
    """A login session; `is_this` marks that of the request."""

    id: uuid.UUID
    browser: str
    since: datetime
    last_seen_at: datetime
    is_this: bool


@dataclass(frozen=True, slots=True)
class TokenRow:
    """An API token; `scopes` are its scope labels, and `host` is where the app is to which it belongs, if to any."""

    id: uuid.UUID
    name: str
    scopes: str
    prefix: str
    host: str
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None
    is_over: bool


@require_http_methods(["GET", "POST"])
def settings_page(request: AuthenticatedRequest) -> HttpResponse:
    """Show and save preferences."""
    form = PreferencesForm(request.POST or None, instance=request.user, choices=model_choices.available_models())
    if request.method == "POST" and form.is_valid():
        services.save_preferences(request.user, form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("settings")
    return render_settings(request, form=form, status=422 if form.errors else 200)


def render_settings(
    request: AuthenticatedRequest,
    *,
    form: PreferencesForm | None = None,
    token_form: TokenForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the settings page, with the token that was just created, if any, for this time alone."""
    login_sessions.touch(request, request.user)
    context = {
        "section": "settings",
        "form": form or PreferencesForm(instance=request.user, choices=model_choices.available_models()),
        "tokens": _token_rows(request.user) if settings.CATO.api.enabled else None,
        "token_form": token_form or TokenForm(),
        "token": shown_once.take(request, "new_token"),
        "webhooks": webhook_rows(request.user) if settings.CATO.api.enabled else None,
        "login_sessions": _session_rows(request),
        "groups": groups_of(request.user),
        "reveals": memory.list_reveals(memory.personal_space(request.user.pk))[:_REVEALS],
        "has_second_factor": has_second_factor(request.user),
        "has_password": request.user.has_usable_password(),
        "openid": settings.CATO.ldap.name if directory.is_linked(request.user) else openid.name(),
        "has_identity": request.user.identities.exists(),
    }
    return render(request, "people/settings.html", context, status=status)


@require_POST
def set_notifications(request: AuthenticatedRequest) -> HttpResponse:
    """Turn notifications of finished answers on or off."""
    request.user.is_notified = request.POST.get("notify") == "yes"
    request.user.save(update_fields=["is_notified"])
    text = _("Notifications on.") if request.user.is_notified else _("Notifications off.")
    messages.success(request, text)
    return redirect("settings")


@require_POST
def set_presence(request: AuthenticatedRequest) -> HttpResponse:
    """Show others when this person is viewing a thread, and this person the others, or neither."""
    request.user.shows_presence = request.POST.get("show") == "yes"
    request.user.save(update_fields=["shows_presence"])
    text = _("Others see when you are viewing a thread.") if request.user.shows_presence else _("You are not shown.")
    messages.success(request, text)
    return redirect("settings")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: AuthenticatedRequest) -> HttpResponse:
    """Change the password."""
    if not request.user.has_usable_password():
        messages.error(
            request, _("You have no password to change. An administrator can make you a link that sets one.")
        )
        return redirect("settings")
    is_limited = request.method == "POST" and not check_code_rate(request, request.user)
    form = PasswordForm(request.user, None if is_limited else request.POST or None)
    if form.is_valid():
        services.change_password(request.user, form.cleaned_data["new"])
        login_sessions.rotate(request, request.user)
        messages.success(request, _("Your password is changed. Other sign-ins have ended."))
        return redirect("settings")
    context = {"section": "settings", "form": form, "error": _(TOO_MANY) if is_limited else ""}
    return render(request, "people/password.html", context, status=429 if is_limited else 422 if form.errors else 200)


@require_POST
def revoke_login_session(request: AuthenticatedRequest) -> HttpResponse:
    """End one login session, or all but the current one."""
    if request.POST.get("login_session") == "others":
        services.sign_out_elsewhere(request.user)
        ended = login_sessions.rotate(request, request.user)
        text = _("Signed out everywhere else: %(count)s ended.") if ended else _("No other sessions.")
        messages.success(request, text % {"count": ended})
    elif login_sessions.revoke(request.user, posted_id(request, "login_session")):
        messages.success(request, _("Signed out."))
    else:
        messages.error(request, _("Already signed out."))
    return redirect("settings")


def _session_rows(request: AuthenticatedRequest) -> list[LoginSessionRow]:
    this = request.session.session_key
    rows = [
        LoginSessionRow(s.id, s.browser, s.since, s.last_seen_at, s.session_id == this)
        for s in login_sessions.active_sessions(request.user)
    ]
    return sorted(rows, key=lambda row: not row.is_this)


def _token_rows(person: User) -> list[TokenRow]:
    """Return the user's tokens and connected apps, newest first, including expired ones."""
    tokens = person.api_tokens.exclude(oauth_grant__isnull=False, oauth_grant__redeemed_at=None)
    return [_token_row(token) for token in tokens.select_related("oauth_grant")]


def _token_row(token: ApiToken) -> TokenRow:
    grant = getattr(token, "oauth_grant", None)
    expires_at = token.expires_at if grant is None else grant.refresh_expires_at
    return TokenRow(
        id=token.pk,
        name=token.name,
        scopes=_scope_labels(token.scopes),
        prefix=token.prefix,
        host="" if grant is None else host_of(grant.redirect_uri),
        created_at=token.created_at,
        used_at=token.used_at,
        expires_at=expires_at,
        is_over=expires_at is not None and expires_at <= timezone.now(),
    )


def _scope_labels(scopes: list[str]) -> str:
    labels = [str(label) for value, label in ApiToken.Scope.choices if value in scopes]
    return ", ".join(label.partition(":")[0] for label in labels)

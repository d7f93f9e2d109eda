"""The page of a person's second factor: authenticator app, passkeys and recovery codes.

Who has to set one up to be signed in uses these pages, too, before the login session begins.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cato_web.accounts import login_sessions
from cato_web.accounts.models import Passkey, User
from cato_web.accounts.second_factor import codes, passkeys, services, sign_in
from cato_web.accounts.services import sign_out_elsewhere
from cato_web.accounts.views import AuthenticatedRequest, posted_id, shown_once
from cato_web.accounts.views.auth import TOO_MANY, check_code_rate
from chat.encryption import decrypt, encrypt
from memory.api import InvalidInputError, clean_name

_SECRET = "authenticator_app_secret"  # noqa: S105  (a key of the session)


@dataclass(frozen=True, slots=True)
class PasskeyRow:
    """A passkey as the page lists it."""

    id: uuid.UUID
    name: str
    added_at: datetime
    used_at: datetime | None


def enrolling(view: Callable[[HttpRequest, User], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Decorate a view so that it gets who may add a second factor; others are sent to the sign-in page."""

    @login_not_required
    @wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        person = sign_in.enrolling_person(request)
        return redirect("sign_in") if person is None else view(request, person)

    return wrapped


@enrolling
@require_GET
def security(request: HttpRequest, person: User) -> HttpResponse:
    """Show what the person has as second factor."""
    return _page(request, person)


@sensitive_post_parameters()
@enrolling
@require_http_methods(["GET", "POST"])
def authenticator_app(request: HttpRequest, person: User) -> HttpResponse:
    """Show a new secret to be scanned, and add the app once it shows the right code."""
    error, status = "", 200
    secret = decrypt(request.session.get(_SECRET, "").encode())
    if request.method == "POST" and secret:
        code = "".join(request.POST.get("code", "").split())[:10]
        if not check_code_rate(request, person):
            error, status = _(TOO_MANY), 429
        elif services.add_app(person, secret=secret, code=code):
            del request.session[_SECRET]
            return _after_addition(request, person, _("The app is added."))
        else:
            error, status = _("This code is wrong. Check the clock of your device and type the code it shows now."), 422
    elif request.method == "POST":
        error, status = _("This page was open too long. Scan the new code."), 422
    if not secret or request.method == "GET":
        secret = codes.new_secret()
        request.session[_SECRET] = encrypt(secret).decode()
    context = {
        "section": "settings",
        "error": error,
        "secret": " ".join(secret[i : i + 4] for i in range(0, len(secret), 4)),
        "qr_code": mark_safe(codes.qr_code(codes.provisioning_uri(secret, person))),
        "layout": _layout(request),
    }
    return render(request, "people/authenticator_app.html", context, status=status)


@require_POST
def remove_authenticator_app(request: AuthenticatedRequest) -> HttpResponse:
    """Remove the authenticator app."""
    try:
        if services.remove_app(request.user):
            messages.success(request, _("The app is removed."))
    except services.LastFactorError as error:
        messages.error(request, str(error))
    return redirect("security")


@enrolling
@require_POST
def registration_options(request: HttpRequest, person: User) -> HttpResponse:
    """Return what the browser needs to make a passkey."""
    return JsonResponse(passkeys.registration_options(request, person))


@enrolling
@require_POST
def add_passkey(request: HttpRequest, person: User) -> HttpResponse:
    """Add the passkey that the browser made."""
    browser = login_sessions.describe_user_agent(request.META.get("HTTP_USER_AGENT", ""))
    name = clean_name(request.POST.get("name", ""))[:80] or browser[:80]
    try:
        services.add_passkey(request, person, name=name, answer=request.POST.get("credential", ""))
    except (passkeys.PasskeyRejectedError, InvalidInputError) as error:
        return _page(request, person, status=422, error=str(error))
    return _after_addition(request, person, _("The passkey is added."))


@require_POST
def rename_passkey(request: AuthenticatedRequest) -> HttpResponse:
    """Give a passkey another name."""
    passkey = _find_passkey(request)
    name = clean_name(request.POST.get("name", ""))[:80]
    if passkey is None:
        messages.error(request, _("This passkey was already deleted."))
    elif name:
        passkey.name = name
        passkey.save(update_fields=["name"])
        messages.success(request, _("Saved."))
    return redirect("security")


@require_POST
def delete_passkey(request: AuthenticatedRequest) -> HttpResponse:
    """Delete a passkey."""
    passkey = _find_passkey(request)
    if passkey is None:
        messages.error(request, _("This passkey was already deleted."))
        return redirect("security")
    try:
        services.delete_passkey(request.user, passkey)
        messages.success(request, _("The passkey is deleted. Delete it from your device, too."))
    except services.LastFactorError as error:
        messages.error(request, str(error))
    return redirect("security")


@require_http_methods(["GET", "POST"])
def recovery_codes(request: AuthenticatedRequest) -> HttpResponse:
    """Make new recovery codes, and show once those that were just made."""
    if request.method == "GET":
        made = shown_once.take(request, "recovery_codes")
        context = {"section": "settings"} | (made or {})
        return render(request, "people/recovery_codes.html", context) if made else redirect("security")
    if not services.has_second_factor(request.user):
        messages.error(request, _("Add an app or a passkey first."))
        return redirect("security")
    return _show_new_codes(request, request.user, reverse("security"))


def _find_passkey(request: AuthenticatedRequest) -> Passkey | None:
    return request.user.passkeys.filter(pk=posted_id(request, "passkey")).first()


def _after_addition(request: HttpRequest, person: User, text: str) -> HttpResponse:
    """Begin the login session if it waited for this, and show the recovery codes with the first second factor."""
    pending = None if request.user.is_authenticated else sign_in.find_pending(request)
    target = pending.target if pending else reverse("security")
    is_first = not person.recovery_codes.exists()
    if pending:
        sign_in.complete(request, person)
    elif is_first:
        sign_out_elsewhere(person)
        login_sessions.rotate(request, person)
    messages.success(request, text)
    return _show_new_codes(request, person, target) if is_first else redirect(target)


def _show_new_codes(request: HttpRequest, person: User, target: str) -> HttpResponse:
    """Make new recovery codes and redirect to the page that shows them, which leads on to `target`."""
    text = "".join(f"{code}\n" for code in services.create_recovery_codes(person))
    shown_once.keep(request, "recovery_codes", {"text": text, "target": target})
    return redirect("recovery_codes")


def _page(request: HttpRequest, person: User, *, status: int = 200, error: str = "") -> HttpResponse:
    has_app = services.has_app(person)
    rows = [PasskeyRow(p.pk, p.name, p.added_at, p.used_at) for p in person.passkeys.all()]
    context = {
        "section": "settings",
        "error": error,
        "app": person.authenticator_app if has_app else None,
        "passkeys": rows,
        "can_add_passkey": passkeys.is_available(request),
        "codes_left": codes.count_recovery_codes(person),
        "is_signed_in": request.user.is_authenticated,
        "layout": _layout(request),
    }
    return render(request, "people/security.html", context, status=status)


def _layout(request: HttpRequest) -> str:
    """Return the template that the page extends: before the login session begins, it has no sidebar."""
    return "base.html" if request.user.is_authenticated else "people/_minimal_base.html"

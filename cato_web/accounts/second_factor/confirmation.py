"""Confirming who acts: pages with far-reaching effects ask again if nobody signed in or confirmed recently.

What was asked for is kept in the session: an address is opened after the confirmation, and a form is shown again, to be sent
by the person.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

_CONFIRMED_AT, _REQUEST = "confirmed_at", "confirmation_request"
_GET, _POST, _BOTH = {"GET", "HEAD"}, {"POST"}, {"GET", "HEAD", "POST"}
# By name: memory and chat have some of these pages, and do not know accounts.
CONFIRMED_ROUTES: dict[str, set[str]] = {
    "reveal": _BOTH,
    "set_role": _POST,
    "admin_people": _POST,  # an invitation can give a role
    "create_reset_link": _POST,
    "remove_second_factor": _POST,
    "export_account": _POST,
    "download_export": _GET,
    "export_person": _POST,
    "admin_export": _POST,
    "create_token": _POST,
    "oauth_authorize": _BOTH,
    "authenticator_app": _BOTH,
    "remove_authenticator_app": _POST,
    "add_passkey": _POST,
    "rename_passkey": _POST,
    "delete_passkey": _POST,
    "recovery_codes": _POST,
}


@dataclass(frozen=True, slots=True)
class InterruptedRequest:
    """The request that the confirmation interrupted.

    `fields`, pairs of name and value, is empty for an address that was only opened.
    """

    path: str
    fields: list[list[str]]
    back: str


class ConfirmationMiddleware:
    """Ask for a confirmation before the routes that need one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: object) -> HttpResponse | None:
        """Return the redirect to the confirmation, or None if none is needed."""
        name = (request.resolver_match and request.resolver_match.url_name) or ""
        if request.method not in CONFIRMED_ROUTES.get(name, ()):
            return None
        if not request.user.is_authenticated or is_recent(request.session):
            return None
        _save(request)
        if request.headers.get("HX-Request"):
            return HttpResponse(headers={"HX-Redirect": reverse("confirm")})
        return redirect("confirm")


def mark_confirmed(session: SessionBase) -> None:
    """Record that the person has just proved who they are."""
    session[_CONFIRMED_AT] = time.time()


def is_recent(session: SessionBase) -> bool:
    """Return whether the person signed in or confirmed within `sign_in.confirm_after_minutes`."""
    return time.time() - float(session.get(_CONFIRMED_AT, 0)) <= 60 * settings.CATO.sign_in.confirm_after_minutes


def find_request(session: SessionBase) -> InterruptedRequest | None:
    """Return what the confirmation interrupted, if anything."""
    saved = session.get(_REQUEST)
    return saved and InterruptedRequest(**saved)


def forget_request(session: SessionBase) -> None:
    """Forget what the confirmation interrupted."""
    session.pop(_REQUEST, None)


def _save(request: HttpRequest) -> None:
    is_form = request.method == "POST"
    lists = request.POST.lists() if is_form else ()
    fields = [(name, value) for name, values in lists for value in values if name != "csrfmiddlewaretoken"]
    request.session[_REQUEST] = {
        "path": request.get_full_path(),
        "fields": [*fields, ("again", "")] if is_form and not fields else fields,
        "back": _referring_path(request),
    }


def _referring_path(request: HttpRequest) -> str:
    """Return the path of the page with the form, which is on this host, because the CSRF check has passed."""
    referer, origin = request.headers.get("Referer", ""), f"{request.scheme}://{request.get_host()}"
    return referer.removeprefix(origin) if referer.startswith(f"{origin}/") else reverse("settings")

"""The page on which a person confirms who they are before something with far-reaching effects."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from cato_web.accounts import directory, openid
from cato_web.accounts.identities import SignInRejectedError
from cato_web.accounts.models import Passkey
from cato_web.accounts.second_factor import confirmation, passkeys, services
from cato_web.accounts.views import AuthenticatedRequest
from cato_web.accounts.views.auth import TOO_MANY, check_code_rate
from cato_web.accounts.views.second_factor import check_factor
from memory.api import clean_text


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def confirm(request: AuthenticatedRequest) -> HttpResponse:
    """Ask for the second factor, or for the password without one, and go on with what was interrupted."""
    if request.method == "GET":
        return _go_on(request) if confirmation.is_recent(request.session) else _page(request)
    if services.has_second_factor(request.user):
        status, error = check_factor(request, request.user)
    else:
        status, error = _check_password(request)
    if error:
        return _page(request, status=status, error=error)
    confirmation.mark_confirmed(request.session)
    return redirect("confirm")


def _check_password(request: AuthenticatedRequest) -> tuple[int, str]:
    """Return the HTTP status and the error, "" if the password is right."""
    if not check_code_rate(request, request.user):
        return 429, _(TOO_MANY)
    password = clean_text(request.POST.get("password", "")[:200])
    try:
        is_right = request.user.check_password(password) or (
            directory.is_linked(request.user) and directory.authenticate(request.user.email, password) == request.user
        )
    except (SignInRejectedError, directory.DirectoryUnavailableError) as error:
        return 422, str(error)
    return (200, "") if is_right else (422, _("This is not your password."))


def _go_on(request: AuthenticatedRequest) -> HttpResponse:
    """Open the address that was interrupted, or show the form that was sent, to be sent again."""
    interrupted = confirmation.find_request(request.session)
    confirmation.forget_request(request.session)
    if interrupted is None:
        return redirect("settings")
    if not interrupted.fields:
        return redirect(interrupted.path)
    return render(request, "people/confirmed.html", {"section": "settings", "interrupted": interrupted})


def _page(request: AuthenticatedRequest, *, status: int = 200, error: str = "") -> HttpResponse:
    person = request.user
    has_factor = services.has_second_factor(person)
    interrupted = confirmation.find_request(request.session)
    context = {
        "section": "settings",
        "error": error,
        "back": interrupted.back if interrupted else "",
        "has_factor": has_factor,
        "has_app": has_factor and services.has_app(person),
        "has_passkeys": passkeys.is_available(request) and Passkey.objects.filter(person=person).exists(),
        "has_password": person.has_usable_password() or directory.is_linked(person),
        "openid": openid.name() if openid.is_linked(person) else "",
    }
    return render(request, "people/confirm.html", context, status=status)

"""The second step of a sign-in, and signing in with a passkey alone."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts.models import Passkey, User
from cato_web.accounts.second_factor import codes, passkeys, services, sign_in
from cato_web.accounts.views.auth import (
    TOO_MANY,
    check_code_rate,
    check_login_rate,
    render_attempt,
    render_sign_in,
    safe_redirect_target,
)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Ask for a code or a passkey after the password, and begin the login session."""
    pending = sign_in.find_pending(request)
    if pending is None:
        if not request.user.is_authenticated:
            messages.error(request, _("Your sign-in took too long. Begin again."))
        return redirect("sign_in")
    if not services.has_second_factor(pending.person):
        return redirect("security")
    if request.method == "GET":
        return _page(request, pending.person)
    status, error = check_factor(request, pending.person)
    if error:
        return _page(request, pending.person, status=status, error=error)
    sign_in.complete(request, pending.person)
    return redirect(pending.target)


@login_not_required
@require_POST
def passkey_sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in with a passkey whose authenticator verified its owner, without a password."""
    target = safe_redirect_target(request.POST.get("next", ""))
    if request.user.is_authenticated:
        return redirect(target)
    if not check_login_rate(request):
        return render_sign_in(request, target=target, status=429, error=_(TOO_MANY))
    try:
        person = passkeys.authenticate(request, None, answer=request.POST.get("credential", ""))
    except passkeys.PasskeyRejectedError as error:
        return render_sign_in(request, target=target, status=422, error=str(error))
    sign_in.complete(request, person)
    return redirect(target)


@login_not_required
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    """Return what the browser needs to use a passkey: of who is signing in or signed in, or else of anybody."""
    if not check_login_rate(request):
        return JsonResponse({"error": _(TOO_MANY)}, status=429)
    if request.POST.get("purpose") == passkeys.SIGN_IN:
        return JsonResponse(passkeys.authentication_options(request, None))
    person = _person_of(request)
    if person is None:
        return JsonResponse({"error": _("Your sign-in took too long. Begin again.")}, status=403)
    return JsonResponse(passkeys.authentication_options(request, person))


def _person_of(request: HttpRequest) -> User | None:
    if request.user.is_authenticated:
        return request.user
    pending = sign_in.find_pending(request)
    return pending.person if pending else None


def check_factor(request: HttpRequest, person: User) -> tuple[int, str]:
    """Check the code or passkey of a form; return the HTTP status and the error, "" if it was accepted."""
    if answer := request.POST.get("credential", ""):
        try:
            passkeys.authenticate(request, person, answer=answer)
        except passkeys.PasskeyRejectedError as error:
            return 422, str(error)
        return 200, ""
    if not check_code_rate(request, person):
        return 429, _(TOO_MANY)
    before = codes.count_recovery_codes(person)
    if not services.accept_code(person, request.POST.get("code", "")[:40]):
        return 422, _("This code is wrong or was used already. Wait for the next one, or use a recovery code.")
    left = codes.count_recovery_codes(person)
    if left < before:
        text = ngettext(
            "You used a recovery code. %(count)s is left. Make new ones under Settings, Security.",
            "You used a recovery code. %(count)s are left. You can make new ones under Settings, Security.",
            left,
        )
        messages.warning(request, text % {"count": left})
    return 200, ""


def _page(request: HttpRequest, person: User, *, status: int = 200, error: str = "") -> HttpResponse:
    context = {
        "error": error,
        "has_app": services.has_app(person),
        "has_passkeys": passkeys.is_available(request) and Passkey.objects.filter(person=person).exists(),
    }
    return render_attempt(request, "people/second_factor.html", context, status)

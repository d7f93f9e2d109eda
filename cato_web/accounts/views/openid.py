"""Sign-in with the identity provider. It starts with a POST, so that a link cannot start it."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cato_web.accounts import openid, services
from cato_web.accounts.forms.sign_in import RegistrationForm
from cato_web.accounts.identities import SignInRejectedError
from cato_web.accounts.models import OneTimeLink, User
from cato_web.accounts.second_factor import confirmation, sign_in
from cato_web.accounts.views.auth import TOO_MANY, check_login_rate, render_join, render_sign_in, safe_redirect_target
from cato_web.errors import not_found


@login_not_required
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider, from the sign-in page or from an invitation."""
    target = safe_redirect_target(request.POST.get("next", ""))
    if not openid.name():
        return not_found(request)
    if request.user.is_authenticated:
        return _start_confirmation(request, request.user) if "confirm" in request.POST else redirect(target)
    token = request.POST.get("invitation", "")
    try:
        invitation = services.validate_link(token, OneTimeLink.Kind.INVITATION) if token else None
    except services.InvalidLinkError as error:
        return render(request, "404.html", {"error": str(error)}, status=404)
    problem, status = _(TOO_MANY), 429
    if check_login_rate(request):
        try:
            return _redirect_to_provider(request, openid.start(request, target=target, invitation=invitation))
        except openid.IdentityProviderUnavailableError as error:
            problem, status = str(error), 503
    if token:
        return render_join(request, RegistrationForm(), token=token, status=status, error=problem)
    return render_sign_in(request, target=target, status=status, error=problem)


@login_not_required
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the user whom the provider authenticated."""
    if not openid.name():
        return not_found(request)
    if request.user.is_authenticated and not confirmation.find_request(request.session):
        return redirect(settings.LOGIN_REDIRECT_URL)
    try:
        result = openid.complete(request)
    except services.InvalidLinkError as error:
        return render(request, "404.html", {"error": str(error)}, status=404)
    except (SignInRejectedError, openid.IdentityProviderUnavailableError) as error:
        if request.user.is_authenticated:
            return _refuse_confirmation(request, error)
        status = 403 if isinstance(error, SignInRejectedError) else 503
        return render_sign_in(request, status=status, error=str(error))
    if request.user.is_authenticated or result.confirms:
        if result.confirms == str(request.user.pk):
            confirmation.mark_confirmed(request.session)
        return redirect("confirm")
    sign_in.complete(request, result.person)
    if result.greeting:
        messages.success(request, result.greeting)
    return redirect(result.target)


def _start_confirmation(request: HttpRequest, person: User) -> HttpResponse:
    if not check_login_rate(request):
        messages.error(request, _(TOO_MANY))
        return redirect("confirm")
    try:
        url = openid.start(request, target=reverse("confirm"), confirms=person)
    except openid.IdentityProviderUnavailableError as error:
        return _refuse_confirmation(request, error)
    return _redirect_to_provider(request, url)


def _refuse_confirmation(request: HttpRequest, error: Exception) -> HttpResponse:
    messages.error(request, str(error))
    return redirect("confirm")


def _redirect_to_provider(request: HttpRequest, url: str) -> HttpResponse:
    """Redirect to `url`, by a Refresh header if the page's form-action policy would block a redirect.

    Some providers use another host than their issuer for sign-in pages.
    """
    if urlsplit(url).netloc == urlsplit(settings.CATO.openid.issuer).netloc:
        return redirect(url)
    response = render_sign_in(request, provider_url=url)
    response["Refresh"] = f"0; url={url}"
    return response

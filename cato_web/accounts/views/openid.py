"""To the provider of identities and back: by a button only, so that no link from elsewhere can begin it."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cato_web.accounts import openid, services
from cato_web.accounts.forms import RegistrationForm
from cato_web.accounts.models import Pass
from cato_web.accounts.views.auth import TOO_MANY, check_login_rate, render_join, render_sign_in, safe_redirect_target
from cato_web.errors import not_found


@login_not_required
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Lead to the provider, from the page of signing in or of an invitation."""
    target = safe_redirect_target(request.POST.get("next", ""))
    if not openid.name():
        return not_found(request)
    if request.user.is_authenticated:
        return redirect(target)
    token = request.POST.get("invitation", "")
    try:
        invitation = services.validate_link(token, Pass.Kind.INVITATION) if token else None
    except services.InvalidLinkError as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    problem, status = _(TOO_MANY), 429
    if check_login_rate(request):
        try:
            return _onward(request, openid.start(request, target=target, invitation=invitation))
        except openid.IdentityProviderUnavailableError as away:
            problem, status = str(away), 503
    if token:
        return render_join(request, RegistrationForm(), token=token, status=status, error=problem)
    return render_sign_in(request, target=target, status=status, error=problem)


@login_not_required
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Let in whom the provider vouches for."""
    if not openid.name():
        return not_found(request)
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    try:
        arrival = openid.complete(request)
    except services.InvalidLinkError as refused:
        return render(request, "404.html", {"error": str(refused)}, status=404)
    except openid.SignInRejectedError as reason:
        return render_sign_in(request, status=403, error=str(reason))
    except openid.IdentityProviderUnavailableError as away:
        return render_sign_in(request, status=503, error=str(away))
    login(request, arrival.person, backend="django.contrib.auth.backends.ModelBackend")
    if arrival.greeting:
        messages.success(request, arrival.greeting)
    return redirect(arrival.target)


def _onward(request: HttpRequest, address: str) -> HttpResponse:
    """A redirect where the pages' form-action allows it; some providers have their pages elsewhere than their issuer."""
    if urlsplit(address).netloc == urlsplit(settings.CATO.openid.issuer).netloc:
        return redirect(address)
    answer = render_sign_in(request, onward=address)
    answer["Refresh"] = f"0; url={address}"
    return answer

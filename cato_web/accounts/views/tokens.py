"""Create and revoke API tokens."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import tokens
from cato_web.accounts.forms.settings import TokenForm
from cato_web.accounts.views import AuthenticatedRequest, posted_id, shown_once
from cato_web.accounts.views.accounts import render_settings


@require_http_methods(["GET", "POST"])
def create(request: AuthenticatedRequest) -> HttpResponse:
    """Create a token, which the settings page shows once; opening the address leads to that page."""
    _require_api()
    if request.method == "GET":
        return redirect("settings")
    form = TokenForm(request.POST)
    if not form.is_valid():
        return render_settings(request, token_form=form, status=422)
    data = form.cleaned_data
    try:
        token = tokens.create_token(request.user, name=data["name"], scopes=data["scopes"], days=data["lifetime"])
    except tokens.TokenLimitError as error:
        form.add_error(None, str(error))
        return render_settings(request, token_form=form, status=422)
    shown_once.keep(request, "new_token", token)
    return redirect(f"{reverse('settings')}#tokens")


@require_POST
def revoke(request: AuthenticatedRequest) -> HttpResponse:
    """Revoke a token."""
    _require_api()
    if tokens.revoke_token(request.user, posted_id(request, "token")):
        messages.success(request, _("Token revoked."))
    else:
        messages.error(request, _("This token was already revoked."))
    return redirect("settings")


def _require_api() -> None:
    if not settings.CATO.api.enabled:
        raise Http404

"""Tokens for programs: made and shown once, and withdrawn."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from cato_web.accounts import tokens
from cato_web.accounts.forms import TokenForm
from cato_web.accounts.requests import PeoplePageRequest
from cato_web.accounts.views.accounts import render_settings
from memory.text import parse_uuid


@require_POST
def make(request: PeoplePageRequest) -> HttpResponse:
    """The page of settings with the new token on it, which no other page ever shows."""
    _refuse_without_api()
    form = TokenForm(request.POST)
    if not form.is_valid():
        return render_settings(request, token_form=form, status=422)
    chosen = form.cleaned_data
    try:
        token = tokens.create_token(request.user, name=chosen["name"], scopes=chosen["scopes"], days=chosen["lifetime"])
    except tokens.TokenLimitError as refusal:
        form.add_error(None, str(refusal))
        return render_settings(request, token_form=form, status=422)
    return render_settings(request, token=token)


@require_POST
def withdraw(request: PeoplePageRequest) -> HttpResponse:
    """Make the token named worthless."""
    _refuse_without_api()
    if tokens.revoke_token(request.user, _id(request.POST.get("token", ""))):
        messages.success(request, _("Token revoked."))
    else:
        messages.error(request, _("This token was already revoked."))
    return redirect("settings")


def _id(text: str) -> uuid.UUID:
    """The id that was sent; that of no token where it is none."""
    return parse_uuid(text) or uuid.UUID(int=0)


def _refuse_without_api() -> None:
    if not settings.CATO.api.enabled:
        raise Http404

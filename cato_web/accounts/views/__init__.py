"""Views of accounts: each translates a request into one service call."""

from __future__ import annotations

from django.http import HttpRequest

from cato_web.accounts.models import User


class AuthenticatedRequest(HttpRequest):
    """A request with a logged-in user."""

    user: User

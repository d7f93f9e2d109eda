"""A request of somebody who is signed in, whose account is at hand."""

from __future__ import annotations

from django.http import HttpRequest

from cato_web.accounts.models import User


class PeoplePageRequest(HttpRequest):
    """A request that came through the sign-in."""

    user: User

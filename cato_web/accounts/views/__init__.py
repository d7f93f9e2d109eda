"""Views of accounts: each translates a request into one service call."""

from __future__ import annotations

import uuid

from django.http import HttpRequest

from cato_web.accounts.models import User
from memory.api import parse_uuid


class AuthenticatedRequest(HttpRequest):
    """A request with a logged-in user."""

    user: User


def posted_id(request: HttpRequest, name: str) -> uuid.UUID:
    """Return the id in a field of the form; for any other text, an id that nothing has."""
    return parse_uuid(request.POST.get(name, "")) or uuid.UUID(int=0)

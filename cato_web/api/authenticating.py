"""Who a program comes in as, and whether its token is good for what it asks."""

from __future__ import annotations

import uuid

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security import HttpBearer

from cato_web.api.errors import ScopeMissing
from cato_web.people.models import ApiToken, User
from cato_web.people.tokens import Bearer, bearer_in
from memory import spaces
from memory.models import Space
from memory.spaces import SpaceIds

Scope = ApiToken.Scope


class ApiRequest(HttpRequest):
    """A request whose token was found good; `auth` says whose it is."""

    auth: Bearer


class Token(HttpBearer):
    """Lets in who has a token with `scope` (None: any); cookies count for nothing."""

    openapi_description = "A token that a person made on the page of settings."

    def __init__(self, scope: str | None) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Bearer:
        bearer = bearer_in(request.headers.get("Authorization", ""))
        if self.scope is not None and self.scope not in bearer.scopes:
            sentence = _('Token is missing the scope "%(scope)s".')
            raise ScopeMissing(sentence % {"scope": self.scope})
        return bearer

    def authenticate(self, request: HttpRequest, token: str) -> Bearer:
        return self(request)


ANY, READ, WRITE, ASK = Token(None), Token(Scope.READ), Token(Scope.WRITE), Token(Scope.ASK)


def person_in(request: ApiRequest) -> User:
    """Whose token came with the request."""
    return request.auth.person


def readable_in(request: ApiRequest, space: str | None = None) -> SpaceIds:
    """The spaces this person may read, or the one named of them. Raises NotFound."""
    if space is not None:
        return frozenset({space_named(request, space).pk})
    return spaces.readable_by(person_in(request).pk)


def space_named(request: ApiRequest, named: str | None) -> Space:
    """The space of this id or name, if this person reads it; None: their own. Raises NotFound."""
    person = person_in(request)
    if named is None:
        return spaces.own(person.pk)
    id = _id(named)
    return spaces.called(person.pk, named) if id is None else spaces.space_for(person.pk, id)


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None

"""Who a program comes in as, and whether its token is good for what it asks."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.security import HttpBearer

from cato_web.accounts.models import ApiToken, User
from cato_web.api_auth import Principal, authenticate_header
from memory import api as memory
from memory.api import Space, SpaceIds, parse_uuid

Scope = ApiToken.Scope


class ApiRequest(HttpRequest):
    """A request whose token was found good; `auth` says whose it is."""

    auth: Principal


class TokenAuth(HttpBearer):
    """Lets in who has a token with `scope` (None: any); cookies count for nothing."""

    openapi_description = "A token that a person made on the page of settings."

    def __init__(self, scope: str | None) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Principal:
        return authenticate_header(request.headers.get("Authorization", ""), self.scope)

    def authenticate(self, request: HttpRequest, token: str) -> Principal:
        return self(request)


ANY, READ, WRITE, ASK = TokenAuth(None), TokenAuth(Scope.READ), TokenAuth(Scope.WRITE), TokenAuth(Scope.ASK)


def current_user(request: ApiRequest) -> User:
    """Whose token came with the request."""
    return request.auth.person


def readable_spaces(request: ApiRequest, space: str | None = None) -> SpaceIds:
    """The spaces this person may read, or the one named of them. Raises NotFoundError."""
    if space is not None:
        return frozenset({resolve_space(request, space).pk})
    return memory.readable_space_ids(current_user(request).pk)


def resolve_space(request: ApiRequest, named: str | None) -> Space:
    """The space of this id or name, if this person reads it; None: their own. Raises NotFoundError."""
    person = current_user(request)
    if named is None:
        return memory.personal_space(person.pk)
    id = parse_uuid(named)
    return memory.space_by_name(person.pk, named) if id is None else memory.get_space(person.pk, id)

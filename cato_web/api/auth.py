"""Authentication of requests, and the spaces that a request may use."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest
from ninja.security.http import HttpAuthBase

from cato_web import idempotency
from cato_web.accounts.acting_token import act_through
from cato_web.accounts.models import ApiToken, User
from cato_web.api_auth import Principal, authenticate_header
from memory import api as memory
from memory.api import Space, SpaceIds, parse_uuid

Scope = ApiToken.Scope


class ApiRequest(HttpRequest):
    """A request authenticated by token."""

    auth: Principal


class TokenAuth(HttpAuthBase):
    """Require a token with `scope` (None: any). Session cookies are ignored."""

    openapi_scheme = "bearer"
    openapi_description = "A token that a user created on the settings page."

    def __init__(self, scope: str | None) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Principal:
        """Return the principal of the token in the request."""
        scopes = () if self.scope is None else (self.scope,)
        principal = authenticate_header(request.headers.get("Authorization", ""), *scopes)
        act_through(principal.token_id)
        return principal


ANY, READ, WRITE, ASK = TokenAuth(None), TokenAuth(Scope.READ), TokenAuth(Scope.WRITE), TokenAuth(Scope.ASK)


def current_user(request: ApiRequest) -> User:
    """Return the owner of the request's token."""
    return request.auth.person


def create_once(
    request: ApiRequest, key: str | None, content: Any, create: Callable[[], Sequence[uuid.UUID]]
) -> list[uuid.UUID]:
    """Call `create` once for this idempotency key; return the ids of what it created, also for a repeated request."""
    return idempotency.create_once(request.auth.token_id, key, path=request.path, content=content, create=create)


def readable_spaces(request: ApiRequest, space: str | None = None) -> SpaceIds:
    """Return the spaces that the user can read, or the named one of them. Raises NotFoundError."""
    if space is not None:
        return frozenset({resolve_space(request, space).pk})
    return memory.readable_space_ids(current_user(request).pk)


def resolve_space(request: ApiRequest, space: str | None) -> Space:
    """Return the readable space with this id or name, or the personal space for None. Raises NotFoundError."""
    person = current_user(request)
    if space is None:
        return memory.personal_space(person.pk)
    id = parse_uuid(space)
    return memory.space_by_name(person.pk, space) if id is None else memory.get_space(person.pk, id)

"""Authentication of API clients by bearer token, for the REST API, the OpenAI protocol and MCP."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.services import hash_token
from memory.api import CatoError, count_api_request

_LAST_USE_INTERVAL = timedelta(minutes=1)


class InvalidTokenError(CatoError):
    """The request has no token, or one that is unknown, expired or revoked."""


class MissingScopeError(CatoError):
    """The token is valid but lacks the required scope."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller of an API."""

    token_id: uuid.UUID
    person: User
    scopes: frozenset[str]


def authenticate_header(header: str, scope: str | None = None) -> Principal:
    """Authenticate an `Authorization` header and count one request of its token.

    `scope`: the scope that the token must have, if any. Raises InvalidTokenError, RateLimitedError and
    MissingScopeError.
    """
    scheme, _space, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidTokenError(_("Missing API token. Send `Authorization: Bearer cato_…`. Create tokens in Settings."))
    now = timezone.now()
    api_token = ApiToken.objects.valid().select_related("person").filter(token_hash=hash_token(token.strip())).first()
    if api_token is None:
        raise InvalidTokenError(_("This token is invalid, expired or revoked. Create another one in Settings."))
    count_api_request(api_token.pk)
    if api_token.used_at is None or now - api_token.used_at > _LAST_USE_INTERVAL:
        ApiToken.objects.filter(pk=api_token.pk).update(used_at=now)
    principal = Principal(api_token.pk, api_token.person, frozenset(api_token.scopes))
    if scope is not None:
        require_scope(principal.scopes, scope)
    return principal


def require_scope(scopes: Collection[str], scope: str) -> None:
    """Raise MissingScopeError unless `scope` is one of `scopes`."""
    if scope not in scopes:
        raise MissingScopeError(_('Token is missing the scope "%(scope)s".') % {"scope": scope})

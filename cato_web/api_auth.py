"""Authentication of API clients by bearer token, for the REST API, the OpenAI protocol and MCP alike."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.services import hash_token
from memory.errors import CatoError
from memory.utils.rate_limits import count_api_request

_LAST_USE_INTERVAL = timedelta(minutes=1)


class InvalidTokenError(CatoError):
    """The request has no token, or one that is unknown, expired or revoked."""


class MissingScopeError(CatoError):
    """The token is valid, but was not made for this."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller of an API."""

    token_id: uuid.UUID
    person: User
    scopes: frozenset[str]


def authenticate_header(header: str, scope: str | None = None) -> Principal:
    """Authenticate an `Authorization` header and count it as one request of its token.

    `scope`: what the token must have been made for, if anything. Raises InvalidTokenError, RateLimitedError and
    MissingScopeError.
    """
    scheme, _space, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidTokenError(_("Missing API token. Send `Authorization: Bearer cato_…`. Create tokens in Settings."))
    now = timezone.now()
    found = ApiToken.objects.valid().select_related("person").filter(token_hash=hash_token(token.strip())).first()
    if found is None:
        raise InvalidTokenError(_("This token is invalid, expired or revoked. Create another one in Settings."))
    count_api_request(found.pk)
    if found.used_at is None or now - found.used_at > _LAST_USE_INTERVAL:
        ApiToken.objects.filter(pk=found.pk).update(used_at=now)
    principal = Principal(found.pk, found.person, frozenset(found.scopes))
    if scope is not None:
        require_scope(principal.scopes, scope)
    return principal


def require_scope(scopes: Collection[str], scope: str) -> None:
    """Raise MissingScopeError unless `scope` is one of `scopes`."""
    if scope not in scopes:
        raise MissingScopeError(_('Token is missing the scope "%(scope)s".') % {"scope": scope})

"""Authentication of API clients by bearer token, for the REST API, the OpenAI protocol and MCP."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.services import hash_token
from chat.errors import UsageLimitError
from memory.api import CatoError, RateLimit, RateLimitedError, count_api_request

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
    rate_limit: RateLimit


def authenticate_header(header: str, *scopes: str, accepts_connected_apps: bool = False) -> Principal:
    """Authenticate an `Authorization` header and count one request of its token.

    `scopes`: the token must have one of them, if any are given. `accepts_connected_apps`: tokens that apps obtained by
    OAuth, which are for /mcp alone, are valid, too. Raises InvalidTokenError, RateLimitedError and MissingScopeError.
    """
    scheme, _space, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidTokenError(_("Missing API token. Send `Authorization: Bearer cato_…`. Create tokens in Settings."))
    now = timezone.now()
    rows = ApiToken.objects.valid() if accepts_connected_apps else ApiToken.objects.valid().filter(oauth_grant=None)
    api_token = rows.select_related("person").filter(token_hash=hash_token(token.strip())).first()
    if api_token is None:
        raise _invalid_token()
    rate_limit = count_api_request(api_token.pk)
    if api_token.used_at is None or now - api_token.used_at > _LAST_USE_INTERVAL:
        ApiToken.objects.filter(pk=api_token.pk).update(used_at=now)
    principal = Principal(api_token.pk, api_token.person, frozenset(api_token.scopes), rate_limit)
    if scopes:
        require_scope(principal.scopes, *scopes)
    return principal


def check_token(token_id: uuid.UUID) -> None:
    """Raise InvalidTokenError if the token has expired or was revoked, or if its owner is deactivated."""
    if not ApiToken.objects.valid().filter(pk=token_id).exists():
        raise _invalid_token()


def rate_limit_headers(limit: RateLimit) -> dict[str, str]:
    """Return the headers that tell a client how many requests are left."""
    return {
        "X-RateLimit-Limit": str(limit.limit),
        "X-RateLimit-Remaining": str(limit.remaining),
        "X-RateLimit-Reset": str(limit.reset),
    }


def exceeded_headers(error: CatoError) -> dict[str, str]:
    """Return the headers of a response to a request above a limit of its token or of usage; none for other errors."""
    if isinstance(error, UsageLimitError):
        return {"Retry-After": str(error.retry_after)}
    if not isinstance(error, RateLimitedError) or error.limit is None:
        return {}
    return rate_limit_headers(error.limit) | {"Retry-After": str(error.limit.reset)}


def add_headers(response: HttpResponseBase, headers: Mapping[str, str]) -> None:
    """Set these headers of the response."""
    for name, value in headers.items():
        response.headers[name] = value


def require_scope(scopes: Collection[str], *required: str) -> None:
    """Raise MissingScopeError unless one of `required` is in `scopes`."""
    if not set(required) & set(scopes):
        raise MissingScopeError(_('Token is missing the scope "%(scope)s".') % {"scope": required[0]})


def _invalid_token() -> InvalidTokenError:
    return InvalidTokenError(_("This token is invalid, expired or revoked. Create another one in Settings."))

"""Dynamic client registration (RFC 7591): an app says its name and where people are sent back to."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from cato_web.accounts.models import ApiToken
from cato_web.accounts.services import hash_token
from cato_web.oauth import grants
from cato_web.oauth.addresses import MAX_REDIRECT_URI_LENGTH, is_allowed
from cato_web.oauth.models import OAuthClient
from memory.api import CatoError, RateLimitedError, clean_name, is_within_limit

MAX_BODY = 20_000  # bytes
_MAX_REDIRECT_URIS = 10
_MAX_CLIENTS = 1000
_PER_HOUR = 30  # from one address


class RegistrationError(CatoError):
    """The metadata of the client are refused; `code` is the error of RFC 7591."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ClientMetadata(BaseModel):
    """The metadata that Cato uses; clients may send more. ID and secret matter in client ID metadata documents only."""

    redirect_uris: list[Annotated[str, StringConstraints(max_length=MAX_REDIRECT_URI_LENGTH)]] = Field(
        min_length=1, max_length=_MAX_REDIRECT_URIS
    )
    client_id: str | None = None
    client_secret: str | None = None
    client_name: str | None = Field(None, max_length=1000)
    token_endpoint_auth_method: str | None = None
    grant_types: list[str] | None = None
    response_types: list[str] | None = None

    @property
    def display_name(self) -> str:
        """The name of the app in one line, or ""."""
        return clean_name(self.client_name or "")[: OAuthClient.MAX_NAME_LENGTH].strip()


def register(body: bytes, *, address: str) -> dict[str, Any]:
    """Register a client; return its id, its secret if it uses one, and its metadata.

    `address`: of the network, for the rate limit. Raises RegistrationError and RateLimitedError.
    """
    metadata = parse_metadata(body)
    if not is_within_limit(f"oauth-register:{address}", _PER_HOUR, 3600):
        raise RateLimitedError(_("Too many registrations. Try again in an hour."))
    grants.delete_unused()
    check_number_of_clients()
    auth_method = metadata.token_endpoint_auth_method or "client_secret_basic"
    secret = "" if auth_method == "none" else secrets.token_urlsafe(32)
    client = OAuthClient.objects.create(
        client_id=secrets.token_urlsafe(24),
        secret_hash=hash_token(secret) if secret else "",
        auth_method=auth_method,
        name=metadata.display_name,
        redirect_uris=metadata.redirect_uris,
    )
    information: dict[str, Any] = {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "redirect_uris": client.redirect_uris,
        "token_endpoint_auth_method": auth_method,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": " ".join(ApiToken.Scope.values),
    }
    if client.name:
        information["client_name"] = client.name
    if secret:
        information |= {"client_secret": secret, "client_secret_expires_at": 0}
    return information


def check_number_of_clients() -> None:
    """Raise RateLimitedError if there are too many clients for another one."""
    if OAuthClient.objects.count() >= _MAX_CLIENTS:
        raise RateLimitedError(_("Too many apps are registered. Try again tomorrow, when unused ones are deleted."))


def parse_metadata(body: bytes) -> ClientMetadata:
    """Return the metadata. Raises RegistrationError, with messages for the developers of the client."""
    if len(body) > MAX_BODY:
        raise RegistrationError("invalid_client_metadata", f"Send at most {MAX_BODY} bytes.")
    try:
        metadata = ClientMetadata.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        code = "invalid_redirect_uri" if field.startswith("redirect_uris") else "invalid_client_metadata"
        raise RegistrationError(code, f"{field}: {first['msg']}") from error
    for uri in metadata.redirect_uris:
        if not is_allowed(uri):
            message = (
                f"Redirect URI {uri} is not allowed: use https, http on the loopback interface, or a private scheme."
            )
            raise RegistrationError("invalid_redirect_uri", message)
    if (metadata.token_endpoint_auth_method or "none") not in OAuthClient.AUTH_METHODS:
        message = f"token_endpoint_auth_method: use one of {', '.join(OAuthClient.AUTH_METHODS)}."
        raise RegistrationError("invalid_client_metadata", message)
    if "authorization_code" not in (metadata.grant_types or ["authorization_code"]):
        raise RegistrationError("invalid_client_metadata", "grant_types: authorization_code is required.")
    if "code" not in (metadata.response_types or ["code"]):
        raise RegistrationError("invalid_client_metadata", "response_types: code is required.")
    return metadata

"""The protocol of the authorization server, by Authlib: requests, client authentication, PKCE and error responses.

Imported by the views when they need it, because loading it takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from authlib.common.urls import add_params_to_uri  # type: ignore[import-untyped]
from authlib.integrations.django_oauth2 import AuthorizationServer  # type: ignore[import-untyped]
from authlib.integrations.django_oauth2.requests import (  # type: ignore[import-untyped]
    DjangoOAuth2Payload,
    DjangoOAuth2Request,
)
from authlib.oauth2 import OAuth2Error, OAuth2Request  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import InvalidRequestError  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.grants import (  # type: ignore[import-untyped]
    AuthorizationCodeGrant,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc7009 import RevocationEndpoint  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import CodeChallenge  # type: ignore[import-untyped]
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from cato_web.accounts.models import User
from cato_web.oauth import grants
from cato_web.oauth.addresses import is_resource, origin_of
from cato_web.oauth.grants import ACCESS_LIFETIME, IssuedTokens
from cato_web.oauth.models import OAuthClient, OAuthGrant

__all__ = ["OAuth2Error", "consent_request", "decide", "refuse", "revocation_response", "token_response"]


class InvalidTargetError(OAuth2Error):  # type: ignore[misc]
    """The request is for another resource than /mcp (RFC 8707)."""

    error = "invalid_target"


class _Request(DjangoOAuth2Request):  # type: ignore[misc]
    """A request with the address that clients use, which a proxy may have changed."""

    def __init__(self, request: HttpRequest) -> None:
        address = origin_of(request)
        OAuth2Request.__init__(self, request.method, f"{address}{request.get_full_path()}", headers=request.headers)
        self.payload = DjangoOAuth2Payload(request)
        self._request = request
        self.address = address
        self.scopes: Collection[str] = ()


class _Server(AuthorizationServer):  # type: ignore[misc]
    def create_oauth2_request(self, request: HttpRequest) -> _Request:
        return _Request(request)

    def query_client(self, client_id: str) -> OAuthClient | None:
        # PostgreSQL accepts no NUL, not even in a condition.
        return None if "\x00" in client_id else OAuthClient.objects.filter(client_id=client_id).first()

    def save_token(self, token: dict[str, Any], request: _Request) -> None:
        """Do nothing: the grants store their tokens."""


class _CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = OAuthClient.AUTH_METHODS

    def save_authorization_code(self, code: str, request: _Request) -> None:
        grants.allow(
            request.client,
            request.user,
            scopes=request.scopes,
            redirect_uri=request.payload.redirect_uri,
            code_challenge=request.payload.data["code_challenge"],
            code=code,
        )

    def query_authorization_code(self, code: str, client: OAuthClient) -> OAuthGrant | None:
        return grants.find_by_code(code, client)

    def authenticate_user(self, authorization_code: OAuthGrant) -> User:
        return authorization_code.token.person

    def generate_token(self, **kwargs: Any) -> dict[str, Any]:
        return _token_fields(grants.redeem(self.request.authorization_code))

    def delete_authorization_code(self, authorization_code: OAuthGrant) -> None:
        """Do nothing: a used code is kept, so that its second use is recognised."""


class _RefreshGrant(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = OAuthClient.AUTH_METHODS

    def authenticate_refresh_token(self, refresh_token: str) -> OAuthGrant | None:
        return grants.find_by_refresh_token(refresh_token)

    def authenticate_user(self, refresh_token: OAuthGrant) -> User:
        return refresh_token.token.person

    def issue_token(self, user: User, refresh_token: OAuthGrant) -> dict[str, Any]:
        return _token_fields(grants.rotate(refresh_token, self.request.form["refresh_token"]))

    def revoke_old_credential(self, refresh_token: OAuthGrant) -> None:
        """Do nothing: the new token has replaced the old one."""


class _Revocation(RevocationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = OAuthClient.AUTH_METHODS

    def check_params(self, request: _Request, client: OAuthClient) -> None:
        """Require a token. Its hint is ignored, whatever it says (RFC 7009, 2.1): tokens are recognised without it."""
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token' in request")

    def query_token(self, token_string: str, token_type_hint: str | None) -> OAuthGrant | None:
        return grants.find_by_token(token_string)

    def revoke_token(self, token: OAuthGrant, request: _Request) -> None:
        grants.revoke(token, by=token.token.person)


class _Pkce(CodeChallenge):  # type: ignore[misc]
    """PKCE with S256, which every client must use, and the check of the resource."""

    def validate_code_challenge(self, grant: _CodeGrant, redirect_uri: str) -> None:
        data = grant.request.payload.data
        if not data.get("code_challenge"):
            raise InvalidRequestError("Missing 'code_challenge'")
        if data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("Unsupported 'code_challenge_method', use S256")
        super().validate_code_challenge(grant, redirect_uri)
        _check_resource(grant.request)

    def validate_code_verifier(self, grant: _CodeGrant, result: object) -> None:
        super().validate_code_verifier(grant, result)
        _check_resource(grant.request)


class _Resource:
    """The check of the resource of a refresh, as an extension of the grant."""

    def __call__(self, grant: _RefreshGrant) -> None:
        grant.register_hook("before_create_token_response", lambda grant: _check_resource(grant.request))


def consent_request(request: HttpRequest) -> Any:
    """Return the grant that an authorization request asks for, with its client, scopes and redirect address.

    Raises OAuth2Error, which has a `redirect_uri` if the client may be told.
    """
    with _unreadable_refused():
        return _server.get_consent_grant(request)


def decide(request: HttpRequest, grant: Any, scopes: Collection[str]) -> HttpResponse:
    """Redirect back to the client: with a code for those of the requested scopes, or with an error if there are none."""
    grant.request.scopes = [scope for scope in scopes if scope in grant.request.scope.split()]
    granting = request.user if grant.request.scopes else None
    return _with_issuer(_server.create_authorization_response(grant.request, granting, grant), grant.request.address)


def refuse(request: HttpRequest, error: OAuth2Error) -> HttpResponse:
    """Redirect back to the client with an error that has a `redirect_uri`."""
    return _with_issuer(_server.handle_error_response(request, error), origin_of(request))


@transaction.atomic
def token_response(request: HttpRequest) -> HttpResponse:
    """Exchange a code or a refresh token. Errors are responses, so that a revocation is committed with them."""
    return _endpoint_response(request, _server.create_token_response)


@transaction.atomic
def revocation_response(request: HttpRequest) -> HttpResponse:
    """Revoke the grant of a token."""
    return _endpoint_response(request, partial(_server.create_endpoint_response, "revocation"))


def _endpoint_response(request: HttpRequest, respond: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    try:
        with _unreadable_refused():
            return respond(request)
    except InvalidRequestError as error:
        response: HttpResponse = _server.handle_error_response(request, error)
        return response


@contextmanager
def _unreadable_refused() -> Iterator[None]:
    """Refuse parameters with characters that no error description, and no column of PostgreSQL, may contain."""
    try:
        yield
    except ValueError as error:
        raise InvalidRequestError("A parameter contains invalid characters") from error


def _check_resource(request: _Request) -> None:
    if any(not is_resource(value, request.address) for value in request.payload.datalist.get("resource", ())):
        raise InvalidTargetError("Only the resource /mcp of this server is available")


def _token_fields(issued: IssuedTokens) -> dict[str, Any]:
    return {
        "token_type": "Bearer",
        "access_token": issued.access_token,
        "expires_in": int(ACCESS_LIFETIME.total_seconds()),
        "refresh_token": issued.refresh_token,
        "scope": issued.scope,
    }


def _with_issuer(response: HttpResponse, issuer: str) -> HttpResponse:
    """Name the issuer in the redirect (RFC 9207), so that a client with several servers does not confuse them."""
    response["Location"] = add_params_to_uri(response["Location"], [("iss", issuer)])
    return response


_server = _Server(OAuthClient, OAuthGrant)
_server.register_grant(_CodeGrant, [_Pkce()])
_server.register_grant(_RefreshGrant, [_Resource()])
_server.register_endpoint(_Revocation)

"""Registered OAuth clients, and what people granted them. Codes, tokens and client secrets are stored as hashes."""

from __future__ import annotations

import hmac
from typing import ClassVar

from django.db import models

from cato_web.accounts.models import ApiToken
from cato_web.accounts.services import hash_token
from cato_web.oauth.addresses import is_registered


class OAuthClient(models.Model):
    """An app that registered itself, or whose ID is the address of its description. Name and addresses are its own claims.

    Authlib calls the methods (`authlib.oauth2.rfc6749.ClientMixin`).
    """

    AUTH_METHODS: ClassVar[tuple[str, ...]] = ("none", "client_secret_basic", "client_secret_post")
    MAX_NAME_LENGTH, MAX_ID_LENGTH = 80, 500

    client_id = models.CharField(max_length=MAX_ID_LENGTH, unique=True)
    secret_hash = models.CharField(max_length=64, blank=True)
    auth_method = models.CharField(max_length=24)
    name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    redirect_uris = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    read_at = models.DateTimeField(null=True, help_text="when its description was read; empty: it registered itself")

    def get_default_redirect_uri(self) -> str | None:
        """Return the address for requests that name none, if only one is registered."""
        return self.redirect_uris[0] if len(self.redirect_uris) == 1 else None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Return whether the client registered this address."""
        return is_registered(redirect_uri, self.redirect_uris)

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """Return the known scopes among the requested ones, all without a request, None if there are none."""
        known = [value for value in ApiToken.Scope.values if not scope or value in scope.split()]
        return " ".join(known) or None

    def check_client_secret(self, client_secret: str) -> bool:
        """Return whether this is the client's secret."""
        return hmac.compare_digest(self.secret_hash, hash_token(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Return whether the client authenticates in this way."""
        return method == self.auth_method

    def check_response_type(self, response_type: str) -> bool:
        """Return whether the client may use this response type."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Return whether the client may use this grant type."""
        return grant_type in ("authorization_code", "refresh_token")


class OAuthGrant(models.Model):
    """A grant of a person to a client: an authorization code at first, then a family of tokens.

    The access token is the row `token`, whose hash changes with each refresh. Deleting it revokes the grant.
    """

    token = models.OneToOneField(ApiToken, on_delete=models.CASCADE, related_name="oauth_grant")
    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="grants")
    redirect_uri = models.TextField(help_text="where the browser was sent with the code")
    code_hash = models.CharField(max_length=64, unique=True)
    code_challenge = models.CharField(max_length=128)
    code_expires_at = models.DateTimeField()
    redeemed_at = models.DateTimeField(null=True, help_text="when the code was exchanged for tokens")
    # A refresh token consists of a part that stays the same and one that changes, so that reuse is recognised.
    family_hash = models.CharField(max_length=64, unique=True, null=True)
    refresh_hash = models.CharField(max_length=64, blank=True)
    refresh_expires_at = models.DateTimeField(null=True)

    code_challenge_method = "S256"

    def get_redirect_uri(self) -> str:
        """Return the address that the token request must repeat, "" if the authorization request named none."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Return the granted scopes, separated by blanks."""
        return " ".join(self.token.scopes)

    def check_client(self, client: OAuthClient) -> bool:
        """Return whether the grant is the client's."""
        return self.client_id == client.pk

"""Grants: a person allows a client, the code is exchanged for tokens, which are refreshed until the grant is revoked.

A right ends at once with the row of its API token: when the person removes it or deletes the account, or when a code or
refresh token is used twice. It does not apply while the account is deactivated.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts import tokens
from cato_web.accounts.models import ApiToken, AuditEntry, User
from cato_web.accounts.services import hash_token, record_audit
from cato_web.oauth.addresses import host_of
from cato_web.oauth.models import OAuthClient, OAuthGrant

CODE_LIFETIME = timedelta(seconds=60)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)  # since the last refresh
UNUSED_CLIENT_LIFETIME = timedelta(days=1)
_REFRESH_PREFIX = "cator_"
_PART_LENGTH = 43  # of 32 random bytes


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """The tokens of a grant, which are not stored."""

    access_token: str
    refresh_token: str
    scope: str


@transaction.atomic
def allow(
    client: OAuthClient,
    person: User,
    *,
    scopes: Collection[str],
    redirect_uri: str | None,
    code_challenge: str,
    code: str,
) -> None:
    """Record that the person allows the client these scopes, to be claimed with the code.

    `redirect_uri` is None if the request named none, so that the browser is sent to the only registered address.
    Raises TokenLimitError if the person has the maximum number of tokens.
    """
    tokens.delete_tokens(_expired(person.api_tokens.all()))
    tokens.check_limit(person)
    token = ApiToken.objects.create(
        person=person,
        name=client.name or host_of(redirect_uri or client.redirect_uris[0]),
        token_hash=hash_token(secrets.token_urlsafe(32)),
        prefix="",
        scopes=[scope for scope in ApiToken.Scope.values if scope in scopes],
        expires_at=timezone.now(),
    )
    OAuthGrant.objects.create(
        token=token,
        client=client,
        redirect_uri=redirect_uri or "",
        code_hash=hash_token(code),
        code_challenge=code_challenge,
        code_expires_at=timezone.now() + CODE_LIFETIME,
    )
    record_audit(person, AuditEntry.Action.TOKEN_AUTHORIZED, str(token.pk))


def find_by_code(code: str, client: OAuthClient) -> OAuthGrant | None:
    """Return the client's grant of a code that can still be exchanged. A code that was used before revokes its grant."""
    grant = _locked().filter(code_hash=hash_token(code), client=client).first()
    if grant is None:
        return None
    if grant.redeemed_at is not None:
        revoke(grant)
        return None
    return grant if grant.code_expires_at > timezone.now() else None


def redeem(grant: OAuthGrant) -> IssuedTokens:
    """Return the first tokens of a grant. They replace earlier ones of the same client and person.

    Not if the client is described by a document: then it is the same one on all of the person's machines.
    """
    if grant.client.read_at is None:
        same = OAuthGrant.objects.filter(token__person=grant.token.person, client=grant.client)
        for earlier in same.exclude(pk=grant.pk):
            revoke(earlier, by=grant.token.person)
    # Until now it was empty if the authorization request named none, which the token request need not repeat then.
    grant.redirect_uri = grant.redirect_uri or grant.client.redirect_uris[0]
    grant.redeemed_at = timezone.now()
    return _issue(grant, secrets.token_urlsafe(32))


def find_by_refresh_token(refresh_token: str) -> OAuthGrant | None:
    """Return the grant of a current refresh token. A former token of a grant revokes it: one of its two users stole it."""
    family, part = _split(refresh_token)
    grant = _locked().filter(family_hash=hash_token(family)).first() if family else None
    if grant is None:
        return None
    if not hmac.compare_digest(grant.refresh_hash, hash_token(part)):
        revoke(grant)
        return None
    return grant if grant.refresh_expires_at and grant.refresh_expires_at > timezone.now() else None


def rotate(grant: OAuthGrant, refresh_token: str) -> IssuedTokens:
    """Return new tokens of a grant; the former ones become invalid."""
    return _issue(grant, _split(refresh_token)[0])


def find_by_token(token: str) -> OAuthGrant | None:
    """Return the grant of an access token, or of a refresh token, for its revocation."""
    family, _part = _split(token)
    if family:
        return _locked().filter(family_hash=hash_token(family)).first()
    return _locked().filter(token__token_hash=hash_token(token)).first()


def revoke(grant: OAuthGrant, *, by: User | None = None) -> None:
    """Revoke a grant with all of its tokens; without `by`, Cato does it by itself."""
    tokens.delete_tokens(ApiToken.objects.filter(pk=grant.token_id))
    record_audit(by, AuditEntry.Action.TOKEN_REVOKED, str(grant.token_id))


def delete_unused() -> None:
    """Delete expired grants, and clients of a day ago to which nobody grants anything."""
    tokens.delete_tokens(_expired(ApiToken.objects.all()))
    is_granted = Exists(OAuthGrant.objects.filter(client=OuterRef("pk")))
    OAuthClient.objects.filter(~is_granted, created_at__lte=timezone.now() - UNUSED_CLIENT_LIFETIME).delete()


def describe_scope(scope: str) -> str:
    """Return what an app may do with this scope, for the person who decides."""
    return {
        ApiToken.Scope.READ: _("Read: search everything that you can read, and open threads and documents"),
        ApiToken.Scope.WRITE: _("Write: add memories, and forget those that you may forget"),
        ApiToken.Scope.ASK: _("Ask: send messages to the model in your name"),
    }[ApiToken.Scope(scope)]


def _issue(grant: OAuthGrant, family: str) -> IssuedTokens:
    now, part = timezone.now(), secrets.token_urlsafe(32)
    access_token = tokens.new_token()
    grant.family_hash, grant.refresh_hash = hash_token(family), hash_token(part)
    grant.refresh_expires_at = now + REFRESH_LIFETIME
    grant.save()
    # The row stays the same, so that rate limits, and answers in progress, continue.
    ApiToken.objects.filter(pk=grant.token_id).update(
        token_hash=hash_token(access_token), expires_at=now + ACCESS_LIFETIME
    )
    return IssuedTokens(access_token, f"{_REFRESH_PREFIX}{family}{part}", grant.get_scope())


def _expired(rows: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
    """Return the tokens whose grant was not redeemed in time, or not refreshed."""
    now = timezone.now()
    is_unclaimed = Q(oauth_grant__redeemed_at=None, oauth_grant__code_expires_at__lte=now)
    return rows.filter(is_unclaimed | Q(oauth_grant__refresh_expires_at__lte=now))


def _locked() -> QuerySet[OAuthGrant]:
    """Return the grants of active people, locked until the transaction ends, so that nothing is used twice at once."""
    grants = OAuthGrant.objects.select_for_update(of=("self",)).select_related("token__person", "client")
    return grants.filter(token__person__is_active=True)


def _split(refresh_token: str) -> tuple[str, str]:
    """Return the constant and the changing part of a refresh token; ("", "") if it is none."""
    parts = refresh_token.removeprefix(_REFRESH_PREFIX)
    if not refresh_token.startswith(_REFRESH_PREFIX) or len(parts) != 2 * _PART_LENGTH:
        return "", ""
    return parts[:_PART_LENGTH], parts[_PART_LENGTH:]

"""API tokens: created and shown once, stored as a hash, limited in number and lifetime."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, AuditEntry, User
from cato_web.accounts.services import hash_token, record_audit
from chat.services import delete_limits_of
from memory.api import CatoError

_PREFIX = "cato_"
_VISIBLE_LENGTH = 10  # characters shown so that owners can identify a token
MAX_TOKENS = 50


class TokenLimitError(CatoError):
    """The user has the maximum number of tokens."""


@transaction.atomic
def create_token(person: User, *, name: str, scopes: Iterable[str], days: int | None) -> str:
    """Return a new token for `scopes`, which expires after `days` (None: never). Raises TokenLimitError."""
    check_limit(person)
    token = new_token()
    created = ApiToken.objects.create(
        person=person,
        name=name,
        token_hash=hash_token(token),
        prefix=token[:_VISIBLE_LENGTH],
        scopes=sorted(set(scopes)),
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    record_audit(person, AuditEntry.Action.TOKEN_CREATED, str(created.pk))
    return token


def check_limit(person: User) -> None:
    """Raise TokenLimitError if the user has the maximum number of tokens, those of connected apps included."""
    if person.api_tokens.count() >= MAX_TOKENS:
        raise TokenLimitError(
            _("You have %(count)s tokens. Revoke one that is no longer used first.") % {"count": MAX_TOKENS}
        )


def new_token() -> str:
    """Return a random token."""
    return _PREFIX + secrets.token_urlsafe(32)


@transaction.atomic
def revoke_token(person: User, token_id: uuid.UUID) -> bool:
    """Revoke one of the user's tokens; return False if there is no such token."""
    is_revoked = delete_tokens(person.api_tokens.filter(pk=token_id)) > 0
    if is_revoked:
        record_audit(person, AuditEntry.Action.TOKEN_REVOKED, str(token_id))
    return is_revoked


@transaction.atomic
def delete_tokens(rows: QuerySet[ApiToken]) -> int:
    """Delete these tokens with their usage limits, and return their number."""
    ids = list(rows.values_list("pk", flat=True))
    ApiToken.objects.filter(pk__in=ids).delete()
    delete_limits_of(ids)
    return len(ids)

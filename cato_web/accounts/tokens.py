"""Tokens by which programs come in as a person: shown once, kept as a hash, limited in number, time and pace."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, AuditEntry, User
from cato_web.accounts.services import hash_token, record_audit
from memory.errors import CatoError

_BEGIN = "cato_"
_SHOWN = 10  # characters by which its owner tells a token from others
_MOST = 50


class TokenLimitError(CatoError):
    """The person has as many tokens as one may have."""


@transaction.atomic
def create_token(person: User, *, name: str, scopes: Iterable[str], days: int | None) -> str:
    """A token for `scopes`, worthless after so many `days` (None: never); it is shown once. Raises TokenLimitError."""
    if person.api_tokens.count() >= _MOST:
        raise TokenLimitError(
            _("You have %(count)s tokens. Revoke one that is no longer used first.") % {"count": _MOST}
        )
    token = _BEGIN + secrets.token_urlsafe(32)
    made = ApiToken.objects.create(
        person=person,
        name=name,
        token_hash=hash_token(token),
        begins_with=token[:_SHOWN],
        scopes=sorted(set(scopes)),
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    record_audit(person, AuditEntry.Action.TOKEN_CREATED, str(made.pk))
    return token


@transaction.atomic
def revoke_token(person: User, token_id: uuid.UUID) -> bool:
    """Make a token of this person worthless at once; False where it is not theirs or gone."""
    is_gone = bool(person.api_tokens.filter(pk=token_id).delete()[0])
    if is_gone:
        record_audit(person, AuditEntry.Action.TOKEN_REVOKED, str(token_id))
    return is_gone

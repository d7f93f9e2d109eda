"""A person's tokens as their page of settings lists them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from cato_web.accounts.models import ApiToken, User


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token; `may` are the first words of what it may do."""

    id: uuid.UUID
    name: str
    may: str
    begins_with: str
    made_at: datetime
    used_at: datetime | None
    expires_at: datetime | None
    is_over: bool


def token_rows(person: User) -> list[TokenRow]:
    """The tokens of this person, newest first, those that ended too until they are withdrawn."""
    now = timezone.now()
    return [
        TokenRow(
            id=token.pk,
            name=token.name,
            may=_may(token.scopes),
            begins_with=token.begins_with,
            made_at=token.made_at,
            used_at=token.used_at,
            expires_at=token.expires_at,
            is_over=token.expires_at is not None and token.expires_at <= now,
        )
        for token in person.api_tokens.all()
    ]


def _may(scopes: list[str]) -> str:
    labels = [str(label) for value, label in ApiToken.Scope.choices if value in scopes]
    return ", ".join(label.partition(":")[0] for label in labels)

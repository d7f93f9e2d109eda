"""Tokens by which programs come in as a person: shown once, kept as a hash, limited in number, time and pace."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.people.models import ApiToken, User
from cato_web.people.services import note
from memory.rate_limits import within

_BEGIN = "cato_"
_SHOWN = 10  # characters by which its owner tells a token from others
_MOST = 50
_SEEN_EVERY = timedelta(minutes=1)


class TokenRefused(Exception):
    """There is no such token, or not any more; the message is for whoever wrote the program."""


class TooFast(Exception):
    """More requests in a minute than one token may make."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who a program comes in as, and what it may do."""

    token_id: uuid.UUID
    person: User
    scopes: frozenset[str]


@transaction.atomic
def make_token(person: User, *, name: str, scopes: Iterable[str], days: int | None) -> str:
    """A token for `scopes`, worthless after so many `days` (None: never); it is shown once. Raises TokenRefused."""
    if person.api_tokens.count() >= _MOST:
        raise TokenRefused(
            _("You have %(count)s tokens. Withdraw one that is not used any more first.") % {"count": _MOST}
        )
    token = _BEGIN + secrets.token_urlsafe(32)
    made = ApiToken.objects.create(
        person=person,
        name=name,
        token_hash=_hash(token),
        begins_with=token[:_SHOWN],
        scopes=sorted(set(scopes)),
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    note(person, "made a token", str(made.pk))
    return token


@transaction.atomic
def withdraw_token(person: User, token_id: uuid.UUID) -> bool:
    """Make a token of this person worthless at once; False where it is not theirs or gone."""
    is_gone = bool(person.api_tokens.filter(pk=token_id).delete()[0])
    if is_gone:
        note(person, "withdrew a token", str(token_id))
    return is_gone


def bearer_in(header: str) -> Bearer:
    """Whose token stands in this Authorization header, counted as one request of it. Raises TokenRefused and TooFast."""
    scheme, _space, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise TokenRefused(_("Missing API token. Send `Authorization: Bearer cato_…`. Create tokens in Settings."))
    return bearer_of(token.strip())


def bearer_of(token: str) -> Bearer:
    """Whose token this is, counted as one request of it. Raises TokenRefused and TooFast."""
    now = timezone.now()
    found = ApiToken.objects.valid().select_related("person").filter(token_hash=_hash(token)).first()
    if found is None:
        raise TokenRefused(_("This token is wrong, expired or withdrawn. Make another one in the settings."))
    if not within(f"api:{found.pk}", settings.CATO.api.requests_per_minute, 60):
        raise TooFast(_("Rate limit exceeded for this token. Try again in a minute."))
    if found.used_at is None or now - found.used_at > _SEEN_EVERY:
        ApiToken.objects.filter(pk=found.pk).update(used_at=now)
    return Bearer(found.pk, found.person, frozenset(found.scopes))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

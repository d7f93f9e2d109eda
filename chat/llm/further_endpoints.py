"""Further model endpoints: add, change and remove them, and set the policies of all. Only administrators do this."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.encryption import encrypt
from chat.errors import InvalidMessageError
from chat.llm.endpoint import list_endpoints, stored_key
from chat.models import Endpoint, SpaceModel, Thread, Turn
from memory.api import DataPolicy, SpaceKnowledge, clean_text, validate_places

MAX_NAME = 30
# "cato" is the thread's own model for API clients, and "default" that of the command /model.
_RESERVED = ("cato", "default")
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


@dataclass(frozen=True, slots=True)
class EndpointFields:
    """The fields that an administrator enters; `api_key` None keeps the stored key. `fallback` is as in `Endpoint`."""

    base_url: str
    api_key: str | None
    model: str
    location: str
    policy: str
    allowed_in: Sequence[str] = ()
    fallback: str | None = None


def validate_name(name: str) -> str:
    """Return the name for a new endpoint. Raises InvalidMessageError if it cannot be used."""
    name = clean_text(name).strip().lower()
    if len(name) > MAX_NAME or not _NAME.fullmatch(name) or name in _RESERVED:
        sentence = _("Write a name of at most %(most)s letters a to z, digits, dots and hyphens, other than cato.")
        raise InvalidMessageError(sentence % {"most": MAX_NAME})
    if Endpoint.objects.filter(name=name, removed_at=None).exists():
        raise InvalidMessageError(_("There is already an endpoint with this name."))
    # Such a choice means a model of the first endpoint, and would be one of the new endpoint from now on.
    if not Endpoint.objects.filter(name=name).exists() and _is_chosen(f"{name}/"):
        sentence = _("Models that begin with %(name)s/ are in use at the first endpoint. Choose another name.")
        raise InvalidMessageError(sentence % {"name": name})
    return name


@transaction.atomic
def add_endpoint(name: str, fields: EndpointFields) -> None:
    """Add an endpoint; a removed one of the same name is used again. Raises InvalidMessageError."""
    name = validate_name(name)
    row = Endpoint.objects.filter(name=name).first() or Endpoint(name=name)
    row.encrypted_key = b""
    row.removed_at = None
    _save(row, fields)


@transaction.atomic
def change_endpoint(row: Endpoint, fields: EndpointFields) -> None:
    """Change a further endpoint. Raises InvalidMessageError, and KeyNeededError if the key belongs to another address."""
    if fields.api_key is None:
        stored_key(row, base_url=fields.base_url)
    _save(row, fields)


@transaction.atomic
def set_policy(
    row: Endpoint, *, location: str, policy: str, allowed_in: Iterable[str], fallback: str | None = None
) -> None:
    """Set where an endpoint runs, what it may receive, and what is asked instead of it. Raises InvalidInputError."""
    row.location = " ".join(clean_text(location).split())[:60]
    row.policy = Endpoint.Policy(policy).value
    row.allowed_in = validate_places(allowed_in) if policy == DataPolicy.LISTED else []
    row.fallback = _validate_fallback(row, fallback)
    row.save()


@transaction.atomic
def remove_endpoint(row: Endpoint) -> None:
    """Remove a further endpoint with its address and key. Threads that use it ask for another model."""
    row.base_url, row.encrypted_key, row.model = "", b"", ""
    row.policy, row.allowed_in, row.fallback = Endpoint.Policy.NONE, [], None
    row.removed_at = timezone.now()
    row.save()
    Endpoint.objects.filter(fallback=row.name).update(fallback=None)
    SpaceModel.objects.filter(model__startswith=f"{row.name}/").delete()


def _save(row: Endpoint, fields: EndpointFields) -> None:
    row.base_url, row.model = fields.base_url.rstrip("/"), fields.model
    if fields.api_key is not None:
        row.encrypted_key = encrypt(fields.api_key)
    set_policy(
        row,
        location=fields.location,
        policy=fields.policy,
        allowed_in=fields.allowed_in,
        fallback=fields.fallback,
    )


def _validate_fallback(row: Endpoint, fallback: str | None) -> str | None:
    if fallback is None:
        return None
    if fallback == row.name or fallback not in {endpoint.name for endpoint in list_endpoints()}:
        raise InvalidMessageError(_("Choose another endpoint that is in use."))
    return fallback


def _is_chosen(prefix: str) -> bool:
    """Return whether any thread, message, space or person uses a model whose name begins so."""
    return (
        Thread.objects.filter(model__startswith=prefix).exists()
        or Turn.objects.filter(requested_model__startswith=prefix).exists()
        or SpaceModel.objects.filter(model__startswith=prefix).exists()
        or SpaceKnowledge.objects.filter(model__startswith=prefix).exists()
        or get_user_model().objects.filter(default_model__startswith=prefix).exists()
    )

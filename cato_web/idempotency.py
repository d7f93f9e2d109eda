"""Idempotency keys: a request that a client repeats with the same key creates nothing twice."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.core.files import File
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import IdempotencyKey
from memory.api import CatoError

MAX_KEY_LENGTH = 200  # characters
_LIFETIME = timedelta(days=1)


class IdempotencyError(CatoError):
    """The key was sent before with another request."""


def create_once(
    token_id: uuid.UUID, key: str | None, *, path: str, content: Any, create: Callable[[], Sequence[uuid.UUID]]
) -> list[uuid.UUID]:
    """Call `create` once for this key of an API token; return the ids of what it created, also when it is repeated.

    `content` is the request as JSON values. Without a key, every call creates. A failed `create` leaves no key. Raises
    IdempotencyError, and what `create` raises.
    """
    if key is None:
        return list(create())
    with transaction.atomic():
        row, is_new = _claim(token_id, key, path, content)
        if is_new:
            row.object_ids = [str(id) for id in create()]
            row.save(update_fields=["object_ids"])
    return [uuid.UUID(id) for id in row.object_ids]


def file_digest(file: File[bytes]) -> str:
    """Return the SHA-256 of a file's bytes, which stands for the file in `content`."""
    digest = hashlib.sha256()
    for block in file.chunks():
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


@contextmanager
def message_key(token_id: uuid.UUID, key: str | None, *, path: str, content: Any) -> Iterator[uuid.UUID]:
    """Provide the client key of the message that a request sends: the same one if it is repeated with the same `key`.

    Like the row it is made of, it belongs to one API token and lasts for a day. Without a key, it is a new one. The block
    posts the message, in one transaction with the row; if it fails, it leaves no key. Raises IdempotencyError.
    """
    if key is None:
        yield uuid.uuid4()
        return
    with transaction.atomic():
        row, _is_new = _claim(token_id, key, path, content)
        yield uuid.uuid5(token_id, str(row.pk))


def delete_old_keys() -> None:
    """Delete the keys of requests that are not repeated any more."""
    IdempotencyKey.objects.filter(created_at__lt=timezone.now() - _LIFETIME).delete()


def _claim(token_id: uuid.UUID, key: str, path: str, content: Any) -> tuple[IdempotencyKey, bool]:
    """Return the row of the key and whether it is new. A second request waits here until the first has ended."""
    text = json.dumps([path, content], sort_keys=True)
    fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    row, is_new = IdempotencyKey.objects.get_or_create(
        api_token_id=token_id, key=key, defaults={"fingerprint": fingerprint}
    )
    if row.fingerprint != fingerprint:
        sentence = _("This Idempotency-Key was sent with another request. Use a new key for each request.")
        raise IdempotencyError(sentence)
    return row, is_new

"""Taking exchanges out of recall and search for the time being, such as those of a branch that does not stand."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from memory.models import Exchange


def hide(exchange_ids: Iterable[uuid.UUID | None]) -> int:
    """Let these be found no more until they are shown again; returns how many. They stay stored and embedded."""
    return _set(exchange_ids, is_hidden=True)


def show(exchange_ids: Iterable[uuid.UUID | None]) -> int:
    """Let these be found again; returns how many."""
    return _set(exchange_ids, is_hidden=False)


def _set(exchange_ids: Iterable[uuid.UUID | None], *, is_hidden: bool) -> int:
    ids = [id for id in exchange_ids if id is not None]
    changed = Exchange.objects.filter(id__in=ids, forgotten_at=None).exclude(is_hidden=is_hidden)
    return changed.update(is_hidden=is_hidden)

"""The API token through which a program acts at the moment; entries of the audit log refer to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_token_id: ContextVar[uuid.UUID | None] = ContextVar("acting_token_id", default=None)


def current_token_id() -> uuid.UUID | None:
    """Return the id of the token, None if a person acts on a page or by a command."""
    return _token_id.get()


def act_through(token_id: uuid.UUID) -> None:
    """Set the token until the end of the surrounding `separate_actor`."""
    _token_id.set(token_id)


@contextmanager
def separate_actor(token_id: uuid.UUID | None = None) -> Iterator[None]:
    """Act through this token while the block runs, None for none until `act_through`."""
    previous = _token_id.set(token_id)
    try:
        yield
    finally:
        _token_id.reset(previous)

"""Write a large amount in steps, with pauses in which others can write to the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_MAX_PAUSE = 0.1  # seconds, the longest interval at which SQLite's waiting writers try again


@contextmanager
def pause_after_writing() -> Iterator[None]:
    """Pause after the block for as long as it took, on SQLite, which has one writer at a time.

    Its waiting writers do not queue but try again at intervals, so one that begins again at once delays all others.
    """
    began = time.monotonic()
    yield
    if connection.vendor == "sqlite":
        time.sleep(min(time.monotonic() - began, _MAX_PAUSE))

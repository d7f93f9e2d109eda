"""Write much in steps, so that others can write to the database between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_LONGEST_PAUSE = 0.1  # seconds, the longest interval in which a waiting writer of SQLite looks whether it is free


@contextmanager
def shared_writing() -> Iterator[None]:
    """Leave the database to others afterwards for as long as the block took, if only one can write at a time.

    SQLite's writers do not queue, so one that begins again at once delays all others.
    """
    began = time.monotonic()
    yield
    if connection.vendor == "sqlite":
        time.sleep(min(time.monotonic() - began, _LONGEST_PAUSE))

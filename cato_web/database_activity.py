"""Whether the database was written to lately, by any process: while nothing happens, the worker sweeps less often."""

from __future__ import annotations

import time
from pathlib import Path

from django.db import DatabaseError, close_old_connections, connection

# Longer than the lease of a job and than the time without progress after which an answer counts as interrupted, so that
# a sweep finds what a killed process left as soon as at other times.
_RECENT = 60.0  # seconds


class DatabaseActivity:
    """Remembers when the database was last seen to have changed."""

    def __init__(self) -> None:
        self._state: object = None
        self._changed_at = time.monotonic()

    def is_recent(self) -> bool:
        """Return True if a write was noticed in the last minute, and while the database cannot be asked."""
        try:
            state = _write_state()
        except (DatabaseError, OSError):
            return True
        finally:
            close_old_connections()
        if state != self._state:
            self._state, self._changed_at = state, time.monotonic()
        return time.monotonic() - self._changed_at < _RECENT


def _write_state() -> object:
    """Return a value that changes with each transaction that writes."""
    if connection.vendor == "sqlite":
        status = Path(f"{connection.settings_dict['NAME']}-wal").stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    with connection.cursor() as cursor:
        # The number that the next transaction gets. Those that only read get none.
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return cursor.fetchone()

"""Restarts Chroma when its database stays locked.

After a full disk, Chroma can keep a transaction open that it neither commits nor rolls back: it still answers searches, but
all writes wait for the lock, forever. A restart rolls the transaction back.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from cato_web.supervisor.process import ChildProcess, log_line

# Seconds. A transaction of Chroma locks readers out for milliseconds.
_LOCKED_FOR = 60.0


class LockWatch:
    """Looks at the database below `files` whenever it is asked to, and kills the process if it found it locked for long."""

    def __init__(self, chroma: ChildProcess, files: Path) -> None:
        self._chroma, self._database = chroma, files.absolute() / "chroma.sqlite3"
        self._locked_since: float | None = None

    def check(self) -> None:
        """Kill Chroma, which is then started again, if every look within a minute met a lock. Call every few seconds."""
        now = time.monotonic()
        if self._chroma.has_exited or not _is_locked(self._database):
            self._locked_since = None
        elif self._locked_since is None:
            self._locked_since = now
        elif now - self._locked_since >= _LOCKED_FOR:
            log_line("the vector store's database stays locked, as after a full disk; starting it again")
            self._locked_since = None
            self._chroma.kill()


def _is_locked(database: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:  # a damaged file is not locked
        return "locked" in str(error)
    return False

"""SQLite connections that outlive the thread that opened them.

Each request has a thread of its own, and Django opens a connection for each thread. That takes 3 ms of processor time
for some seventy functions and the schema, as much as six queries. Django has a pool for PostgreSQL only.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from pathlib import Path
from typing import Any
from weakref import WeakSet

from django.db.backends.sqlite3 import base

# A process rarely uses more at once. Each caches at most 2 MB of pages.
_MAX_IDLE = 8
_File = tuple[int, int] | None  # device and inode
# The connection used last is taken first, because its pages and statements are cached.
_idle: deque[tuple[_File, sqlite3.Connection]] = deque()


class DatabaseWrapper(base.DatabaseWrapper):
    """Uses idle connections again, and keeps a connection that it is told to close as an idle one."""

    _file: _File = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        """Return an idle connection to the database, or a new one."""
        self._file = _file_at(self.settings_dict["NAME"])
        while _idle:
            try:
                file, connection = _idle.pop()
            except IndexError:  # another thread took it
                break
            if file == self._file:
                return connection
            connection.close()  # the file was replaced since, by restoring a backup
        created: sqlite3.Connection = super().get_new_connection(conn_params)
        return created

    def create_cursor(self, name: str | None = None) -> sqlite3.Cursor:
        """Return a cursor, which `close` ends."""
        cursor: sqlite3.Cursor = super().create_cursor(name)
        self._cursors.add(cursor)
        return cursor

    def _close(self) -> None:
        # A cursor with unread rows keeps its view of the database, in which the next user would miss what was stored since.
        for cursor in list(self._cursors):
            cursor.close()
        is_reusable = self._file and not self.errors_occurred and not self.connection.in_transaction
        if is_reusable and len(_idle) < _MAX_IDLE:
            _idle.append((self._file, self.connection))
        else:
            with self.wrap_database_errors:
                self.connection.close()


def _file_at(path: str | Path) -> _File:
    """Return what identifies the file at this path, None if there is none yet."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino

"""Connections to SQLite are used again by other threads, as long as they are sound and their file is the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError
from django.db.utils import ConnectionHandler

from cato_web.sqlite import base


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "test.sqlite3"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def no_idle_connections(monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any) -> Iterator[None]:
    monkeypatch.setattr(base, "_idle", base.deque())
    with django_db_blocker.unblock():
        yield
    for _file, connection in base._idle:
        connection.close()


def wrapper(path: Path) -> Any:
    """Return the connection of a thread, not opened yet."""
    return ConnectionHandler({"default": {"ENGINE": "cato_web.sqlite", "NAME": path}})["default"]


def use(path: Path, statement: str = "SELECT 1") -> Any:
    """Open, use and close a connection in a thread of its own; return the SQLite connection."""
    used = []

    def work() -> None:
        connection = wrapper(path)
        with connection.cursor() as cursor:
            cursor.execute(statement)
        used.append(connection.connection)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return used[0]


def test_a_closed_connection_is_used_by_the_next_thread(file: Path) -> None:
    first = use(file)

    assert use(file) is first


def test_connections_that_are_open_at_once_are_different(file: Path) -> None:
    one, other = wrapper(file), wrapper(file)
    one.ensure_connection()
    other.ensure_connection()

    assert one.connection is not other.connection
    one.close()
    other.close()


def test_unread_rows_do_not_hide_what_was_stored_since(file: Path) -> None:
    use(file, "PRAGMA journal_mode = wal")
    use(file, "CREATE TABLE fact (number)")
    use(file, "INSERT INTO fact VALUES (1), (2)")
    interrupted, writer = wrapper(file), wrapper(file)
    unread = interrupted.cursor()
    unread.execute("SELECT number FROM fact")
    unread.fetchone()
    writer.cursor().execute("INSERT INTO fact VALUES (3)")
    interrupted.close()

    with wrapper(file).cursor() as cursor:
        cursor.execute("SELECT count(*) FROM fact")
        assert cursor.fetchone() == (3,)
    with pytest.raises(ProgrammingError):
        unread.fetchone()
    writer.close()


def test_only_so_many_connections_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_MAX_IDLE", 1)
    one, other = wrapper(file), wrapper(file)
    one.ensure_connection()
    other.ensure_connection()
    one.close()
    other.close()

    assert len(base._idle) == 1


def test_a_file_that_was_replaced_is_opened_anew(file: Path, tmp_path: Path) -> None:
    use(file, "CREATE TABLE former (id integer)")
    restored = tmp_path / "restored.sqlite3"
    use(restored, "CREATE TABLE restored (id integer)")
    restored.replace(file)

    use(file, "INSERT INTO restored VALUES (1)")


def test_a_connection_that_is_closed_within_a_transaction_is_not_kept(file: Path) -> None:
    connection = wrapper(file)
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE lost (id integer)")
    connection.close()

    assert not base._idle
    use(file, "CREATE TABLE lost (id integer)")


def test_a_connection_that_failed_is_not_kept(file: Path) -> None:
    connection = wrapper(file)
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("no statement")
    connection.close()

    assert not base._idle

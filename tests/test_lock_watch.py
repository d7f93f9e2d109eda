"""The supervisor starts Chroma again when its database stays locked, as it does after a full disk."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cato_web.supervisor import lock_watch
from cato_web.supervisor.lock_watch import LockWatch
from cato_web.supervisor.process import ChildProcess


@pytest.fixture
def chroma() -> Iterator[ChildProcess]:
    child = ChildProcess("chroma", [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ))
    child.start()
    yield child
    child.kill()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "chroma.sqlite3", isolation_level=None)
    connection.execute("CREATE TABLE embeddings (id)")
    yield connection
    connection.close()


def test_a_vector_store_is_killed_once_its_database_stays_locked(tmp_path, chroma, database, monkeypatch):
    monkeypatch.setattr(lock_watch, "_LOCKED_FOR", 0)
    watch = LockWatch(chroma, tmp_path)
    database.execute("BEGIN EXCLUSIVE")
    watch.check()
    assert not chroma.has_exited
    watch.check()
    assert chroma.has_exited


def test_locks_with_pauses_between_them_are_work(tmp_path, chroma, database, monkeypatch):
    monkeypatch.setattr(lock_watch, "_LOCKED_FOR", 0)
    watch = LockWatch(chroma, tmp_path)
    for _ in range(3):
        database.execute("BEGIN EXCLUSIVE")
        watch.check()
        database.execute("COMMIT")
        watch.check()
    assert not chroma.has_exited


def test_a_damaged_file_is_not_locked(tmp_path, chroma, monkeypatch):
    monkeypatch.setattr(lock_watch, "_LOCKED_FOR", 0)
    (tmp_path / "chroma.sqlite3").write_bytes(b"damaged" * 1000)
    watch = LockWatch(chroma, tmp_path)
    watch.check()
    watch.check()
    assert not chroma.has_exited


def test_files_that_do_not_exist_yet_are_not_locked(tmp_path, chroma, monkeypatch):
    monkeypatch.setattr(lock_watch, "_LOCKED_FOR", 0)
    watch = LockWatch(chroma, tmp_path)
    watch.check()
    watch.check()
    assert not chroma.has_exited

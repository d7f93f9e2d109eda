"""The lock of a data directory, and who holds it: `serve`, a command, or the keeper of the commands' vector store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cato_web.supervisor.plan import StartupError

SERVE = "Cato already runs on"


class DataDirLockedError(StartupError):
    """Another process has the data directory; `holder` is what it said about itself."""

    def __init__(self, data_dir: Path, holder: str, process_id: str) -> None:
        advice = "" if holder == SERVE else " Wait until it ends, or end it, and try again."
        super().__init__(f"{holder} {data_dir} (process {process_id}).{advice}")
        self.holder = holder


@contextmanager
def data_dir_lock(data_dir: Path, holder: str = SERVE) -> Iterator[None]:
    """Lock the data directory for this process; `holder` says to others what it does. Raises DataDirLockedError."""
    with _lock_file(data_dir).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process_id, other = _read_holder(lock)
            raise DataDirLockedError(data_dir, other, process_id) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n{holder}\n")
        lock.flush()
        yield


def is_locked_by_serve(data_dir: Path) -> bool:
    """Return True if `serve` has the lock of the data directory."""
    try:
        lock = _lock_file(data_dir).open()
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_holder(lock)[1] == SERVE
    return False


def _read_holder(lock: IO[str]) -> tuple[str, str]:
    """Return the process id of the holder, and what it said about itself."""
    lock.seek(0)
    process_id, _line, holder = lock.read().strip().partition("\n")
    return process_id or "unknown", holder or SERVE


def _lock_file(data_dir: Path) -> Path:
    return data_dir / "serve.lock"

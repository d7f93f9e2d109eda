"""The lock of a data directory, and who holds it: `serve`, a command, or the keeper of the commands' vector store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    """Lock the data directory for this process; `holder` says to others what it does. Raises StartupError."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(_lock_file(data_dir).open("a+"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
            os.write(lock.fileno(), f"{os.getpid()}\n{holder}\n".encode())
        except BlockingIOError:
            process_id, other = _read_holder(lock)
            raise DataDirLockedError(data_dir, other, process_id) from None
        except OSError as error:  # a full disk, or a file of another account
            raise StartupError(f"{_lock_file(data_dir)} cannot be written: {error.strerror}.") from error
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

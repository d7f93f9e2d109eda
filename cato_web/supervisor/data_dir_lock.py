"""The lock of a data directory, and who holds it: `serve`, a command, or the keeper of the commands' vector store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    with (data_dir / "serve.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            process_id, _line, other = lock.read().strip().partition("\n")
            raise DataDirLockedError(data_dir, other or SERVE, process_id or "unknown") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n{holder}\n")
        lock.flush()
        yield

"""One vector store for all commands and MCP clients that use a data directory while `serve` does not run.

    python -m cato_web.supervisor.shared_store DATA_DIR PATH

The first of them starts this process, the keeper. It locks the data directory against `serve`, runs Chroma over the files
at PATH, and ends when nobody uses it any more: every user holds a shared lock, which the system releases when it is
killed. Imports neither Django nor chromadb. Exit codes: 0 ended, 1 failure, 75 another keeper has the data directory.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cato_web.supervisor.chroma_cleanup import ChromaCleanupError, run_if_requested
from cato_web.supervisor.data_dir_lock import DataDirLockedError, data_dir_lock
from cato_web.supervisor.plan import StartupError, chroma_server, free_port, python_path, start_child
from cato_web.supervisor.process import accepts_connections
from cato_web.supervisor.server_info import read_server_info, write_server_info

START_TIMEOUT = 20.0  # seconds, for a temporary vector store
_POLL_INTERVAL = 0.05  # seconds
_END_TIMEOUT = 10.0  # seconds
_HAS_KEEPER = os.EX_TEMPFAIL
_HOLDER = "`manage.py mcp` or `cato` uses"


@contextmanager
def shared_store(data_dir: Path, path: Path) -> Iterator[str]:
    """Use the vector store over the files at `path` while the block runs; yield its address. Raises StartupError."""
    with _users_file(data_dir).open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper ends
        url, keeper = _start_or_find(data_dir, path)
        yield url
    _wait_until_released(data_dir, keeper)


def main(argv: Sequence[str] | None = None) -> int:
    """Keep a vector store until nobody uses it; return the exit code."""
    data_dir, path = map(Path, sys.argv[1:] if argv is None else argv)
    # Stays open, and locked in the end, until the process exits: users that arrive meanwhile wait for that.
    users = _users_file(data_dir).open("a")
    try:
        with data_dir_lock(data_dir, _HOLDER):
            _keep(data_dir, path, users.fileno())
    except DataDirLockedError as error:
        sys.stderr.write(f"{error}\n")
        return _HAS_KEEPER if error.holder == _HOLDER else 1
    except StartupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    # Users wait for this after the lock is released, so that `serve` can start as soon as a command has ended.
    _info_file(data_dir).unlink(missing_ok=True)
    return 0


def _keep(data_dir: Path, path: Path, users: int) -> None:
    with temporary_chroma(path) as url:
        write_server_info(_info_file(data_dir), {"pid": os.getpid(), "chroma_url": url})
        # The command that reads this output may end first.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        while not _lock(users, fcntl.LOCK_EX):
            time.sleep(_POLL_INTERVAL)
    with suppress(ChromaCleanupError):  # its marker stays: the next command that cleans, or `serve`, tries again
        run_if_requested(path)


def _start_or_find(data_dir: Path, path: Path) -> tuple[str, subprocess.Popen[str] | None]:
    deadline = time.monotonic() + START_TIMEOUT
    keeper: subprocess.Popen[str] | None = None
    while True:
        url = _running_store(data_dir)
        if url is not None:
            return url, keeper
        if keeper is None:
            keeper = _start_keeper(data_dir, path)
        elif keeper.poll() is not None:
            message = keeper.stderr.read().strip() if keeper.stderr is not None else ""
            if keeper.returncode != _HAS_KEEPER or time.monotonic() > deadline:
                raise StartupError(message)
            keeper = None
        elif time.monotonic() > deadline:
            raise StartupError(f"The vector store over {path} did not start.")
        time.sleep(_POLL_INTERVAL)


def _start_keeper(data_dir: Path, path: Path) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": python_path()}
    # Its own session protects it from Ctrl-C in the terminal of the command, which may not be its last user.
    return subprocess.Popen(  # noqa: S603  (no user input)
        [sys.executable, "-m", "cato_web.supervisor.shared_store", str(data_dir), str(path)],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def _running_store(data_dir: Path) -> str | None:
    url = read_server_info(_info_file(data_dir)).get("chroma_url")
    return url if url is not None and accepts_connections(url) else None


def _wait_until_released(data_dir: Path, keeper: subprocess.Popen[str] | None) -> None:
    """Wait until the keeper has ended, unless others still use the store."""
    deadline = time.monotonic() + _END_TIMEOUT
    while read_server_info(_info_file(data_dir)) and time.monotonic() < deadline:
        if keeper is not None:
            keeper.poll()  # until then, a child that was killed seems to run
        with _users_file(data_dir).open("a") as users:
            is_ending = not _lock(users.fileno(), fcntl.LOCK_SH)
            if not is_ending and not _lock(users.fileno(), fcntl.LOCK_EX):
                return
        time.sleep(_POLL_INTERVAL)


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _info_file(data_dir: Path) -> Path:
    return data_dir / "store.json"


def _users_file(data_dir: Path) -> Path:
    return data_dir / "store.users"


@contextmanager
def temporary_chroma(path: Path) -> Iterator[str]:
    """Run a Chroma server for these files while the block runs. Raises StartupError."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    env = dict(os.environ) | {"ANONYMIZED_TELEMETRY": "False"}
    server = chroma_server(path, port, env)
    start_child(server)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while not accepts_connections(url):
            if server.has_exited or time.monotonic() > deadline:
                raise StartupError(f"The vector store over {path} did not start.{server.stderr_tail}")
            time.sleep(_POLL_INTERVAL)
        yield url
    finally:
        server.terminate()
        if server.process is not None:
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(server.grace)
        server.kill()


if __name__ == "__main__":
    sys.exit(main())

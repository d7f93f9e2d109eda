"""Child processes of `serve`: each in its own session, restarted when it exits, killed with the supervisor."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

FIRST_DELAY = 0.2  # seconds until a child is restarted; doubles each time
MAX_DELAY = 10.0
STABLE_AFTER = 30.0  # seconds of running after which the delay is reset
_MAX_STDERR_BYTES = 4000  # bytes to show
_MAX_STDERR_FILE = 1_000_000  # bytes after which the file with the stderr of a quiet process is emptied
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass
class ChildProcess:
    """A process that is kept running. Its own session protects it from Ctrl-C in the terminal."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    grace: float = 5.0  # seconds between SIGTERM and SIGKILL
    niceness: int = 0
    many_files: bool = False
    quiet: bool = False  # show stderr only after a failure
    process: subprocess.Popen[bytes] | None = None
    _stderr: IO[bytes] | None = None
    _started_at: float = 0.0
    _delay: float = field(default=FIRST_DELAY)
    _restart_at: float | None = None

    def start(self) -> None:
        """Start the process, which must not be running. Raises OSError, and SubprocessError between fork and exec."""
        self._started_at, self._restart_at = time.monotonic(), None
        if self.quiet:
            # Unbuffered, because the process moves the position in the file.
            self._stderr = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed with the process)
        self.process = subprocess.Popen(  # noqa: S603  (no user input)
            self.command,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if self.quiet else None,
            stderr=self._stderr,
            start_new_session=True,
            preexec_fn=_before_exec(os.getpid(), self.niceness, self.many_files),
        )

    @property
    def has_exited(self) -> bool:
        """Return whether the process was started and has exited."""
        return self.process is not None and self.process.poll() is not None

    def restart(self) -> None:
        """Start an exited process again; if memory, handles or disk space are short, `restart_if_exited` retries."""
        try:
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            self._delay_restart(f"cannot be started ({error})")

    def restart_if_exited(self) -> None:
        """Log an exit and restart the process once its delay has passed. Call often, which also keeps stderr small."""
        if not self.has_exited:
            if self._stderr is not None and self._stderr.tell() > _MAX_STDERR_FILE:
                self._stderr.seek(0)
                self._stderr.truncate()
            return
        now = time.monotonic()
        if self._restart_at is None:
            self.kill()  # the rest of its process group
            if now - self._started_at > STABLE_AFTER:
                self._delay = FIRST_DELAY
            self._delay_restart(f"ended ({self.exit_description})", self.stderr_tail)
        elif now >= self._restart_at:
            self.restart()

    def _delay_restart(self, reason: str, output: str = "") -> None:
        self._restart_at = time.monotonic() + self._delay
        log_line(f"{self.name} {reason}; starting it again in {self._delay:g} s{output}")
        self._delay = min(self._delay * 2, MAX_DELAY)

    @property
    def restart_in(self) -> float | None:
        """Return the seconds until the restart; None while it is running."""
        return None if self._restart_at is None else max(self._restart_at - time.monotonic(), 0.0)

    @property
    def exit_description(self) -> str:
        """Describe the exit: signal or exit code."""
        code = self.process.returncode if self.process else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    @property
    def stderr_tail(self) -> str:
        """Return the last stderr lines of a quiet process that failed; "" if a signal ended it."""
        if self._stderr is None or self.process is None or (self.process.returncode or 0) <= 0:
            return ""
        self._stderr.seek(0)
        return "\n" + self._stderr.read()[-_MAX_STDERR_BYTES:].decode(errors="replace").strip()

    def terminate(self) -> None:
        """Send SIGTERM to the process only; it stops its own children."""
        self._restart_at = None
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        """Kill the whole process group."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()


def accepts_connections(url: str) -> bool:
    """Return whether the server at unix://path or http://host:port accepts a connection."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(parts.path)
        else:
            socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1).close()
    except OSError:
        return False
    return True


def log_line(text: str) -> None:
    """Write a line to stderr. A full disk or a closed pipe behind it does not end the supervisor."""
    with suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _before_exec(parent: int, niceness: int, many_files: bool) -> Callable[[], None]:
    """Return the function that runs between fork and exec; everything it needs is loaded before the fork."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def run() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the supervisor died before prctl, so no signal will arrive
                os._exit(1)
        if niceness:
            os.nice(niceness)
        if many_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    return run

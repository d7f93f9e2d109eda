"""Child processes of `serve`: each in its own session, restarted when it ends, gone with the supervisor."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

FIRST_DELAY = 0.2  # seconds until a child that ended is started again; doubles each time
LONGEST_DELAY = 10.0
LONG_ENOUGH = 30.0  # a child that lived so long begins with the first delay again
_LONGEST_COMPLAINT = 4000  # bytes
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass
class ChildProcess:
    """A process that should always run. Its own session keeps Ctrl-C in the terminal from it."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    grace: float = 5.0  # seconds between asking it to end and killing it
    niceness: int = 0
    many_files: bool = False
    quiet: bool = False  # what it says is of use to nobody, unless it fails
    process: subprocess.Popen[bytes] | None = None
    _stderr: IO[bytes] | None = None
    _started: float = 0.0
    _delay: float = field(default=FIRST_DELAY)
    _due: float | None = None

    def start(self) -> None:
        """Start it; the caller sees to it that it is not running."""
        self._started, self._due = time.monotonic(), None
        if self.quiet:
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process runs)
        self.process = subprocess.Popen(  # noqa: S603  (commands are ours)
            self.command,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if self.quiet else None,
            stderr=self._stderr,
            start_new_session=True,
            preexec_fn=_before_exec(os.getpid(), self.niceness, self.many_files),
        )

    @property
    def ended(self) -> bool:
        """Whether it was started and runs no more."""
        return self.process is not None and self.process.poll() is not None

    def revive(self) -> None:
        """If it ended, say so and start it again once its delay is over. To be called often."""
        if not self.ended:
            return
        now = time.monotonic()
        if self._due is None:
            self.kill()  # what it started and can no longer end
            if now - self._started > LONG_ENOUGH:
                self._delay = FIRST_DELAY
            self._due = now + self._delay
            log_line(f"{self.name} ended ({self.how}); starting it again in {self._delay:g} s{self.complaint}")
            self._delay = min(self._delay * 2, LONGEST_DELAY)
        elif now >= self._due:
            self.start()

    @property
    def due(self) -> float | None:
        """Seconds until `revive` has something to do; None while it runs."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    @property
    def how(self) -> str:
        """In words, how it ended."""
        code = self.process.returncode if self.process else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    @property
    def complaint(self) -> str:
        """What a quiet one that failed wrote to stderr, on lines of its own; "" where a signal ended it."""
        if self._stderr is None or self.process is None or (self.process.returncode or 0) <= 0:
            return ""
        self._stderr.seek(0)
        return "\n" + self._stderr.read()[-_LONGEST_COMPLAINT:].decode(errors="replace").strip()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process itself; what it started is its own to end."""
        self._due = None
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        """Kill it and whatever it left in its process group."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()


def log_line(text: str) -> None:
    """Tell whoever watches the terminal or the log."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _before_exec(parent: int, niceness: int, many_files: bool) -> Callable[[], None]:
    """What the child does between fork and exec; all it needs is loaded before the fork."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def run() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the supervisor died in between, so the signal will never come
                os._exit(1)
        if niceness:
            os.nice(niceness)
        if many_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    return run

"""What the process that reads a file may not do, from before it looks at the file until its end.

The kernel holds it to its memory, its processor time, no files written (of any size), no processes and few open
files; on Linux, where user namespaces are allowed, also to a network with nothing in it. An audit hook of the
interpreter holds all Python code, ours and the libraries', to opening nothing but Python's own modules, for reading:
no other file, no socket, no process, no change to the file system. The hook cannot be taken away again.

What this does not guard: machine code that a hole in the interpreter or a compiled library let in passes by the hook,
and may then read what this user may read. Nothing it reads can leave by the network where the namespace was granted
(containers often refuse it), nor be written into a file. So it is a fence around mistakes and the usual attacks, not
a virtual machine.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from memory.documents.extraction.result import ExtractionLimits

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MOST_OPEN_FILES = 64
# All that `os`, sockets, processes and foreign functions announce, but for what imports need.
_FORBIDDEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.", "fcntl.", "pty.", "sqlite3.", "tempfile.")
_ALLOWED = frozenset({"os.listdir", "os.scandir"})
_MODULES = (".py", ".pyc")


def confine(limits: ExtractionLimits) -> None:
    """Put this process under the limits of this module for the rest of its life."""
    os.nice(10)
    # Should the parent die, nobody else watches the clock.
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds + 1)
    if sys.platform == "linux":
        _leave_network()
        _limit(resource.RLIMIT_NPROC, 0)
    # macOS knows the limit on memory but does not keep it.
    if sys.platform != "darwin":
        _limit(resource.RLIMIT_AS, limits.memory_mb * 1_048_576)
    # The signal that says so comes at the lower limit; at the higher one the kernel just kills.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.processor_seconds, limits.processor_seconds + 1))
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)
    sys.addaudithook(_forbid)


def _limit(which: int, most: int) -> None:
    """Set a limit for good; never above the one already there."""
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _leave_network() -> bool:
    """Move into a network of our own, without any interface up. False where the system does not let us."""
    return bool(ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def _forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Raise PermissionError at what no reader has to do."""
    if event == "open":
        path, mode, flags = arguments
        if not _is_module(path) or _writes(mode, flags):
            raise PermissionError(f"A reader may not open {path!r}.")
    elif event.startswith(_FORBIDDEN) and event not in _ALLOWED:
        raise PermissionError(f"A reader may not do {event}.")


def _is_module(path: object) -> bool:
    """Whether `path` is a file of Python code in one of the places modules are imported from."""
    if not isinstance(path, str) or not path.endswith(_MODULES):
        return False
    real = os.path.realpath(path)
    return any(place and real.startswith(os.path.realpath(place) + os.sep) for place in sys.path)


def _writes(mode: object, flags: object) -> bool:
    written = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return written or (isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)))

"""Restrict the process that extracts a file, from before it reads the file until its end.

The kernel limits memory, processor time, written files (none), processes (none) and open files. On Linux, if user
namespaces are allowed, the network is empty. An audit hook of the interpreter restricts all Python code, including
libraries, to opening Python's own modules for reading: no other file, socket, process or change of the file system. The
hook cannot be removed.

Not covered: machine code injected through a bug of the interpreter or a compiled library bypasses the hook and can read
what this user can read. It cannot send this over the network if the namespace was granted (containers often refuse it),
nor write it to a file. So the sandbox stops mistakes and usual attacks, but is not a virtual machine.
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
_MAX_OPEN_FILES = 64
# Audit events of `os`, sockets, processes and foreign functions, except those that imports need.
_FORBIDDEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.", "fcntl.", "pty.", "sqlite3.", "tempfile.")
_ALLOWED = frozenset({"os.listdir", "os.scandir"})
_MODULES = (".py", ".pyc")


def confine(limits: ExtractionLimits) -> None:
    """Apply the limits of this module to this process, irrevocably."""
    os.nice(10)
    # If the parent dies, nothing else enforces the time limit.
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds + 1)
    if sys.platform == "linux":
        _leave_network()
        _limit(resource.RLIMIT_NPROC, 0)
    # macOS accepts the memory limit but does not enforce it.
    if sys.platform != "darwin":
        _limit(resource.RLIMIT_AS, limits.memory_mb * 1_048_576)
    # The process gets a signal at the lower limit and is killed at the higher one.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.processor_seconds, limits.processor_seconds + 1))
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    sys.addaudithook(_forbid)


def _limit(which: int, limit: int) -> None:
    """Set a limit irrevocably, never above the present one."""
    _, hard = resource.getrlimit(which)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(which, (limit, limit))


def _leave_network() -> bool:
    """Enter a network namespace without interfaces. Return False if the system refuses it."""
    return bool(ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def _forbid(event: str, arguments: tuple[object, ...]) -> None:
    """Raise PermissionError for events that no extractor needs."""
    if event == "open":
        path, mode, flags = arguments
        if not _is_module(path) or _writes(mode, flags):
            raise PermissionError(f"A reader may not open {path!r}.")
    elif event.startswith(_FORBIDDEN) and event not in _ALLOWED:
        raise PermissionError(f"A reader may not do {event}.")


def _is_module(path: object) -> bool:
    """Return True if `path` is a Python source or compiled file below an import path."""
    if not isinstance(path, str) or not path.endswith(_MODULES):
        return False
    real = os.path.realpath(path)
    return any(folder and real.startswith(os.path.realpath(folder) + os.sep) for folder in sys.path)


def _writes(mode: object, flags: object) -> bool:
    written = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return written or (isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)))

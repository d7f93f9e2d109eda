"""Standard input of the command line: read it, or say that it was not read."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import sys
import termios

from cato_web.cli.messages import UsageError

_UNREAD = "Standard input was not read. Write - for a text that comes from it, or use --ask TEXT --stdin."


def read_text() -> str:
    """Return standard input as text. Raises UsageError if it is not UTF-8."""
    try:
        return read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UsageError("Standard input is not UTF-8 text.") from error


def read_bytes() -> bytes:
    """Return all of standard input, nothing if it is closed."""
    return sys.stdin.buffer.read() if sys.stdin is not None else b""


def unread_note() -> str:
    """Return a sentence if something was piped or redirected to this command and not read, else ""."""
    try:
        handle = sys.stdin.fileno()
        status = os.fstat(handle)
        is_unread = _has_data(handle, status)
    except (AttributeError, OSError, ValueError):  # standard input is closed
        return ""
    return _UNREAD if is_unread else ""


def _has_data(handle: int, status: os.stat_result) -> bool:
    if stat.S_ISREG(status.st_mode):
        return status.st_size > os.lseek(handle, 0, os.SEEK_CUR)
    if not stat.S_ISFIFO(status.st_mode):
        return False
    # Reading would wait for a program that keeps its pipe open.
    (count,) = struct.unpack("i", fcntl.ioctl(handle, termios.FIONREAD, b"\0" * 4))
    return bool(count)

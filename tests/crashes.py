"""Simulate the death of a process before a given line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from django.db import connection


class Crash(BaseException):
    """Simulates the death of the process."""


def crashes_at(step: int, call: Callable[[], object], files: Collection[str | None]) -> bool:
    """Run `call` until it reaches line number `step` of these files; return False if it ends before."""
    reached: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
            if len(reached) > step:
                raise Crash
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Crash:
        connection.close()
        connection.connect()
        return True
    finally:
        sys.settrace(before)
    return False

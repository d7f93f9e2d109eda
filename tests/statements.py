"""Counts the SQL statements of all threads of this process, each with the step of a message that caused it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

# Functions by the step that they belong to; the outermost one on the stack decides.
STEPS = {
    "create_thread_with_message": "post",
    "post_message": "post",
    "publish_and_start": "new turn",
    "build_job": "job",
    "load_job": "job",
    "recall_for_turn": "recall",
    "prepare_answer": "prepare",
    "save_checkpoints": "save",
    "complete_turn": "complete",
    "finished_frames": "finish",
    "_start_queued": "queue",
    "apply_model_title": "title",
    "thread_list_update": "list",
    "is_socket_authorized": "socket",
    "missing_updates": "sync",
    "mark_read": "read",
    # Not caused by a message: every two or three seconds, and when pages are opened or left.
    "_watch": "watch",
    "authorize_sockets": "watch",
    "turns_without_access": "watch",
    "record_presence": "watch",
    "record_arrivals_and_departures": "watch",
    "presence": "watch",
    "present_users": "watch",
}


@dataclass
class Statements:
    """The statements of a block, in order: step, caller and SQL."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def steps(self) -> Counter[str]:
        """Return the number of statements of each step."""
        return Counter(step for step, _caller, _sql in self.rows)

    def report(self) -> str:
        """Return a line for each statement, for the message of a failed assertion."""
        lines = (f"{step:10} {caller:60} {sql[:150]}" for step, caller, sql in self.rows)
        return "\n".join([f"{len(self)} statements: {dict(self.steps)}", *lines])


@contextmanager
def counted_statements() -> Iterator[Statements]:
    """Count statements, with SAVEPOINT but without BEGIN and COMMIT, which only some drivers send as statements."""
    counted, is_counting = Statements(), True

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if is_counting and not sql.startswith("BEGIN"):
            counted.rows.append((*_place(), " ".join(sql.split())))
        return execute(sql, params, many, context)

    def attach(connection: Any, **kwargs: Any) -> None:
        if count not in connection.execute_wrappers:
            connection.execute_wrappers.append(count)

    attach(connections["default"])
    connection_created.connect(attach)
    try:
        yield counted
    finally:
        # The connections of other threads keep the function.
        is_counting = False
        connection_created.disconnect(attach)


def _place() -> tuple[str, str]:
    """Return the step and the innermost function of the product on the stack."""
    step, caller = "request", ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module, name = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if module.startswith(("chat.", "memory.", "cato_web.")):
            caller = caller or f"{module}.{name}"
            step = STEPS.get(name, step) if module.startswith("chat.") and ".views." not in module else step
        frame = frame.f_back
    return step, caller

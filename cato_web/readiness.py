"""What Cato leans on, asked one by one: is it there, and does somebody do the work that waits?"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from chat.realtime import hub
from memory import jobs
from memory.errors import CatoError
from memory.index import store

OK, DEGRADED, DOWN, OFF = "ok", "degraded", "down", "off"
_PATIENCE = 2.0  # seconds that one answer may take
_LATE = 120.0  # seconds after which nobody seems to do what is due
_FRESH = 1.0  # seconds for which what was found out is said again, so that asking costs nothing

_asking = ThreadPoolExecutor(4, thread_name_prefix="ready")
_lock = Lock()
_last: tuple[float, Readiness] | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One dependency: its state, in how many milliseconds it said so, and what is wrong."""

    state: str
    ms: int = 0
    reason: str = ""
    oldest_due_seconds: float | None = None

    def as_json(self) -> dict[str, object]:
        said: dict[str, object] = {"state": self.state, "ms": self.ms}
        if self.reason:
            said["reason"] = self.reason
        if self.oldest_due_seconds is not None:
            said["oldest_due_seconds"] = round(self.oldest_due_seconds, 1)
        return said


@dataclass(frozen=True, slots=True)
class Readiness:
    """All of them: `down` without the database, `degraded` where the chat goes on with less."""

    checks: dict[str, Check]

    @property
    def state(self) -> str:
        if self.checks["database"].state == DOWN:
            return DOWN
        return OK if all(check.state in (OK, OFF) for check in self.checks.values()) else DEGRADED

    def as_json(self) -> dict[str, object]:
        return {"state": self.state, "checks": {name: check.as_json() for name, check in self.checks.items()}}


def check_readiness() -> Readiness:
    """Ask all at once; what was found less than a second ago is not asked again."""
    global _last
    with _lock:
        if _last is None or time.monotonic() - _last[0] > _FRESH:
            under_way = {name: _asking.submit(_asked, question) for name, question in _QUESTIONS.items()}
            deadline = time.monotonic() + _PATIENCE
            checks = {}
            for name, answer in under_way.items():
                try:
                    checks[name] = answer.result(max(0.0, deadline - time.monotonic()))
                except TookTooLong:
                    answer.cancel()  # one that waits for its turn behind those that hang
                    checks[name] = Check(DOWN, round(1000 * _PATIENCE), "no answer in time")
            _last = (time.monotonic(), Readiness(checks))
        return _last[1]


def _asked(question: Callable[[], Check]) -> Check:
    began = time.monotonic()
    try:
        found = question()
    except (DatabaseError, CatoError, OSError) as error:
        found = Check(DOWN, reason=type(error).__name__)
    finally:
        close_old_connections()
    return Check(found.state, round(1000 * (time.monotonic() - began)), found.reason, found.oldest_due_seconds)


def _database() -> Check:
    executor = MigrationExecutor(connection)
    lacking = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return Check(DOWN, reason="migrations are missing: run `prepare`") if lacking else Check(OK)


def _redis() -> Check:
    if settings.REDIS_URL is None:
        return Check(OFF)
    return Check(OK) if hub.is_connected() else Check(DOWN, reason="no connection")


def _vector_store() -> Check:
    if not settings.CATO.vector_store.enabled:
        return Check(OFF)
    store.ping()
    return Check(OK)


def _worker() -> Check:
    """Known by what it leaves undone: no question to a worker tells as much."""
    due = [queue.oldest_due_at for queue in jobs.queue_stats() if queue.oldest_due_at is not None]
    age = _age(min(due, default=None))
    reason = "nobody does what is due" if age > _LATE else ""
    return Check(DEGRADED if reason else OK, reason=reason, oldest_due_seconds=age)


def _age(oldest: datetime | None) -> float:
    return (timezone.now() - oldest).total_seconds() if oldest else 0.0


_QUESTIONS = {"database": _database, "redis": _redis, "vector_store": _vector_store, "worker": _worker}

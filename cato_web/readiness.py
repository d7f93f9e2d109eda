"""Check each dependency, and whether due jobs are processed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from chat.realtime import peers
from memory import api as memory
from memory.api import CatoError, jobs

OK, DEGRADED, DOWN, OFF = "ok", "degraded", "down", "off"
_TIMEOUT = 2.0  # seconds for all checks
_OVERDUE_AFTER = 120.0  # seconds after which no worker seems to run
_CACHE_TTL = 1.0  # seconds

_executor = ThreadPoolExecutor(4, thread_name_prefix="ready")
_lock = Lock()
_last: tuple[float, Readiness] | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one dependency, its response time in milliseconds and the reason for a problem."""

    state: str
    ms: int = 0
    reason: str = ""
    oldest_due_seconds: float | None = None

    def as_json(self) -> dict[str, object]:
        """Return the check as JSON fields."""
        fields: dict[str, object] = {"state": self.state, "ms": self.ms}
        if self.reason:
            fields["reason"] = self.reason
        if self.oldest_due_seconds is not None:
            fields["oldest_due_seconds"] = round(self.oldest_due_seconds, 1)
        return fields


@dataclass(frozen=True, slots=True)
class Readiness:
    """All checks: `down` without the database, `degraded` if the chat works with restrictions."""

    checks: dict[str, Check]

    @property
    def state(self) -> str:
        """Return the overall state."""
        if self.checks["database"].state == DOWN:
            return DOWN
        return OK if all(check.state in (OK, OFF) for check in self.checks.values()) else DEGRADED

    def as_json(self) -> dict[str, object]:
        """Return the state and all checks as JSON fields."""
        return {"state": self.state, "checks": {name: check.as_json() for name, check in self.checks.items()}}


def check_readiness() -> Readiness:
    """Run all checks concurrently, or return a result that is less than a second old."""
    global _last
    with _lock:
        if _last is None or time.monotonic() - _last[0] > _CACHE_TTL:
            futures = {name: _executor.submit(_run_check, check) for name, check in _CHECKS.items()}
            deadline = time.monotonic() + _TIMEOUT
            checks = {}
            for name, future in futures.items():
                try:
                    checks[name] = future.result(max(0.0, deadline - time.monotonic()))
                except TimeoutError:
                    future.cancel()  # still queued behind checks that hang
                    checks[name] = Check(DOWN, round(1000 * _TIMEOUT), "no answer in time")
            _last = (time.monotonic(), Readiness(checks))
        return _last[1]


def _run_check(check: Callable[[], Check]) -> Check:
    started_at = time.monotonic()
    try:
        result = check()
    except (DatabaseError, CatoError, OSError) as error:
        result = Check(DOWN, reason=type(error).__name__)
    finally:
        close_old_connections()
    return replace(result, ms=round(1000 * (time.monotonic() - started_at)))


def _database() -> Check:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return Check(DOWN, reason="migrations are missing: run `prepare`") if missing else Check(OK)


def _redis() -> Check:
    if settings.REDIS_URL is None:
        return Check(OFF)
    return Check(OK) if peers.is_connected() else Check(DOWN, reason="no connection")


def _vector_store() -> Check:
    if not settings.CATO.vector_store.enabled:
        return Check(OFF)
    memory.ping_vector_store()
    return Check(OK)


def _worker() -> Check:
    """Check for overdue jobs: a worker that responds may still not process its queue."""
    due = [queue.oldest_due_at for queue in jobs.queue_stats() if queue.oldest_due_at is not None]
    age = (timezone.now() - min(due)).total_seconds() if due else 0.0
    reason = "no worker processes due jobs" if age > _OVERDUE_AFTER else ""
    return Check(DEGRADED if reason else OK, reason=reason, oldest_due_seconds=age)


_CHECKS = {"database": _database, "redis": _redis, "vector_store": _vector_store, "worker": _worker}

"""Taking due work from job rows: a lease says who works, an attempt number voids what comes too late."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.apps import apps
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from memory.models import Job

J = TypeVar("J", bound=Job)

# Longer than a batch takes; what a killed worker held waits so long.
LEASE = timedelta(seconds=45)
# Seconds; well within a lease.
_RENEWAL_INTERVAL = 10.0
MAX_FAILURES = 5
_LONGEST_WAIT = 300.0


def claim(rows: QuerySet[J], limit: int) -> list[J]:
    """Take up to `limit` due rows: nobody else gets them until the lease ends. `rows` says which and in what order."""
    now = timezone.now()
    ready = due(rows, now)
    if not ready.exists():
        return []
    with transaction.atomic():
        ids = list(ready.select_for_update(skip_locked=True, of=("self",)).values_list("id", flat=True)[:limit])
        rows.model._default_manager.filter(id__in=ids).update(
            locked_until=now + LEASE, attempt=F("attempt") + 1, error=""
        )
    return list(rows.filter(id__in=ids))


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Work of one kind: how much waits, how much failed for good, and since when the oldest is due that nobody holds."""

    kind: str
    pending: int
    failed: int
    oldest_due_at: datetime | None


def queue_stats() -> list[QueueStats]:
    """All kinds of work there are, whoever defines them."""
    now = timezone.now()
    kinds = [model for model in apps.get_models() if issubclass(model, Job)]
    return [_queue(model, now) for model in sorted(kinds, key=lambda model: model.__name__)]


def _queue(model: type[Job], now: datetime) -> QueueStats:
    rows = model._default_manager.all()
    waiting = rows.filter(state=Job.State.PENDING)
    oldest = due(rows, now).aggregate(oldest=Min("due_at"))["oldest"]
    return QueueStats(model.__name__.lower(), waiting.count(), rows.filter(state=Job.State.FAILED).count(), oldest)


def has_due(rows: QuerySet[J]) -> bool:
    """Whether any of these rows could be claimed now."""
    return due(rows).exists()


class LeaseLostError(Exception):
    """This worker no longer owns the job: it was cancelled, or another worker has claimed it since."""


class Lease(Generic[J]):
    """A claimed job. Every write holds only while this worker owns it: pending still, and of the same attempt."""

    def __init__(self, job: J) -> None:
        self.job = job
        self._renewed_at = time.monotonic()

    def update(self, **fields: object) -> None:
        """Write fields of the job's row. Raises LeaseLostError."""
        if not self._row().update(**fields):
            raise LeaseLostError

    def renew(self, **fields: object) -> None:
        """Hold the job for another lease, and write fields of its row. Raises LeaseLostError."""
        self._renewed_at = time.monotonic()
        self.update(locked_until=timezone.now() + LEASE, **fields)

    def check(self) -> None:
        """Renew the lease where that is due. Raises LeaseLostError."""
        if time.monotonic() - self._renewed_at >= _RENEWAL_INTERVAL:
            self.renew()
        elif not self._row().exists():
            raise LeaseLostError

    def is_held(self) -> bool:
        """Whether this worker still owns the job, whose lease is renewed where that is due."""
        try:
            self.check()
        except LeaseLostError:
            return False
        return True

    def release(self, **fields: object) -> None:
        """Give the job back, to be claimed again when it is due. Raises LeaseLostError."""
        self.update(locked_until=None, **fields)

    def finish(self, **fields: object) -> None:
        """The job is done. Raises LeaseLostError."""
        self.release(state=Job.State.DONE, error="", **fields)

    def fail(self, error: str, **fields: object) -> None:
        """The job failed for good. Raises LeaseLostError."""
        self.release(state=Job.State.FAILED, error=error[:300], **fields)

    def _row(self) -> QuerySet[J]:
        rows: QuerySet[J] = type(self.job)._default_manager.filter(
            pk=self.job.pk, attempt=self.job.attempt, state=Job.State.PENDING
        )
        return rows


def release_for_retry(job: Job, error: str, *, counts: bool, final: bool = False, after: float | None = None) -> bool:
    """Give the job back, to be tried later with growing pauses; return whether it is now failed for good.

    `counts`: the work itself failed (its fifth failure is the last); otherwise something it needs is away and it waits
    as long as that takes. `after`: seconds the other side asked us to wait.
    """
    failures = job.failures + (1 if counts else 0)
    failed = final or failures >= MAX_FAILURES
    pause = after if after is not None else min(2.0 ** min(job.attempt, 8), _LONGEST_WAIT if counts else 15.0)
    type(job)._default_manager.filter(pk=job.pk, attempt=job.attempt).update(
        state=Job.State.FAILED if failed else Job.State.PENDING,
        failures=failures,
        due_at=timezone.now() + timedelta(seconds=pause),
        locked_until=None,
        error=error[:300],
    )
    return failed


def cancel(rows: QuerySet[J]) -> int:
    """Let nobody go on with these rows, voiding whatever is being done about them at this moment; returns how many."""
    return rows.update(state=Job.State.DONE, attempt=F("attempt") + 1, locked_until=None, error="")


def requeue(rows: QuerySet[J]) -> int:
    """Make rows due now, voiding whatever is being done about them at this moment; returns how many."""
    return rows.update(
        state=Job.State.PENDING,
        attempt=F("attempt") + 1,
        failures=0,
        due_at=timezone.now(),
        locked_until=None,
        error="",
    )


def due(rows: QuerySet[J], now: datetime | None = None) -> QuerySet[J]:
    """Those of the rows that could be claimed now."""
    now = now or timezone.now()
    free = Q(locked_until=None) | Q(locked_until__lt=now)
    return rows.filter(free, state=Job.State.PENDING, due_at__lte=now)

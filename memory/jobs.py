"""Claim, renew and finish jobs. A lease gives a job to one worker; the attempt number voids late results."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from memory.models import Job

log = logging.getLogger(__name__)

J = TypeVar("J", bound=Job)

# Longer than a batch takes. The jobs of a killed worker wait for this time.
LEASE = timedelta(seconds=45)
# Seconds; well within a lease.
_RENEWAL_INTERVAL = 10.0
MAX_FAILURES = 5
_MAX_RETRY_DELAY = 300.0


def claim(rows: QuerySet[J], limit: int) -> list[J]:
    """Lease up to `limit` due rows of `rows`, in its order; no other worker can claim them until the lease ends."""
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
    """Counts of pending and permanently failed jobs of one kind, and the due time of the oldest job without a lease.

    Jobs that no worker may do, such as those of a retired index generation, are not counted.
    """

    kind: str
    pending: int
    failed: int
    oldest_due_at: datetime | None


def queue_stats() -> list[QueueStats]:
    """Return the statistics of all Job models of all apps, sorted by class name."""
    now = timezone.now()
    kinds = [model for model in apps.get_models() if issubclass(model, Job)]
    return [_queue_of(model, now) for model in sorted(kinds, key=lambda model: model.__name__)]


def _queue_of(model: type[Job], now: datetime) -> QueueStats:
    rows = model.workable()
    waiting = rows.filter(state=Job.State.PENDING)
    oldest = due(rows, now).aggregate(oldest=Min("due_at"))["oldest"]
    return QueueStats(model.__name__.lower(), waiting.count(), rows.filter(state=Job.State.FAILED).count(), oldest)


@dataclass(frozen=True, slots=True)
class FailedKind:
    """Failed jobs of another package that administrators see and retry.

    `rows` returns them; `describe` returns what one of them is, without any text of it, and since when it has failed;
    `retry` retries some of them and returns their number.
    """

    rows: Callable[[], QuerySet[Any]]
    describe: Callable[[Any], tuple[str, datetime]]
    retry: Callable[[QuerySet[Any]], int]


# By the kind; other packages add theirs once all models are loaded.
FAILED_KINDS: dict[str, FailedKind] = {}


def has_due(rows: QuerySet[J]) -> bool:
    """Return True if at least one of the rows can be claimed now."""
    return due(rows).exists()


class LeaseLostError(Exception):
    """The worker no longer owns the job because it was cancelled, requeued or claimed by another worker."""


class Lease(Generic[J]):
    """A claimed job. Writes succeed only while the row is pending and has the attempt number of this claim."""

    def __init__(self, job: J) -> None:
        self.job = job
        self._renewed_at = time.monotonic()

    def update(self, **fields: object) -> None:
        """Write fields of the job's row. Raises LeaseLostError."""
        if not self._row().update(**fields):
            raise LeaseLostError

    def renew(self, **fields: object) -> None:
        """Extend the lease by `LEASE` from now and write fields of the job's row. Raises LeaseLostError."""
        self._renewed_at = time.monotonic()
        self.update(locked_until=timezone.now() + LEASE, **fields)

    def check(self) -> None:
        """Check ownership; renew the lease if the last renewal was 10 seconds ago or more. Raises LeaseLostError."""
        if time.monotonic() - self._renewed_at >= _RENEWAL_INTERVAL:
            self.renew()
        elif not self._row().exists():
            raise LeaseLostError

    def is_held(self) -> bool:
        """Return True if this worker still owns the job; renew the lease like `check`."""
        try:
            self.check()
        except LeaseLostError:
            return False
        return True

    def release(self, **fields: object) -> None:
        """End the lease; the job can be claimed again when it is due. Raises LeaseLostError."""
        self.update(locked_until=None, **fields)

    def finish(self, **fields: object) -> None:
        """Mark the job as done and end the lease. Raises LeaseLostError."""
        self.release(state=Job.State.DONE, error="", **fields)

    def fail(self, error: str, **fields: object) -> None:
        """Mark the job as permanently failed and store 300 characters of `error`. Raises LeaseLostError."""
        self.release(state=Job.State.FAILED, error=error[:300], **fields)

    def _row(self) -> QuerySet[J]:
        rows: QuerySet[J] = type(self.job)._default_manager.filter(
            pk=self.job.pk, attempt=self.job.attempt, state=Job.State.PENDING
        )
        return rows


def release_for_retry(job: Job, error: str, *, counts: bool, final: bool = False, after: float | None = None) -> bool:
    """Release the lease after a failure and retry with exponential backoff; return True if the job failed permanently.

    `counts`: count the failure towards MAX_FAILURES; False if a dependency is down, which does not limit the retries.
    `final`: fail without a retry. `after`: delay in seconds that the remote service requested.
    """
    failures = job.failures + (1 if counts else 0)
    failed = final or failures >= MAX_FAILURES
    pause = after if after is not None else min(2.0 ** min(job.attempt, 8), _MAX_RETRY_DELAY if counts else 15.0)
    type(job)._default_manager.filter(pk=job.pk, attempt=job.attempt).update(
        state=Job.State.FAILED if failed else Job.State.PENDING,
        failures=failures,
        due_at=timezone.now() + timedelta(seconds=pause),
        locked_until=None,
        error=error[:300],
    )
    return failed


def cancel(rows: QuerySet[J]) -> int:
    """Mark the rows as done, void the results of workers that hold them, and return the number of rows."""
    return rows.update(state=Job.State.DONE, attempt=F("attempt") + 1, locked_until=None, error="")


def requeue(rows: QuerySet[J]) -> int:
    """Make the rows due now, void the results of workers that hold them, and return the number of rows."""
    return rows.update(
        state=Job.State.PENDING,
        attempt=F("attempt") + 1,
        failures=0,
        due_at=timezone.now(),
        locked_until=None,
        error="",
    )


def repeat(rows: QuerySet[J]) -> int:
    """Have the jobs done again after their present workers have ended, and return the number of rows.

    The results of these workers are void. A leased job stays leased, so that the next worker does not begin before.
    """
    pending = rows.filter(state=Job.State.PENDING).update(attempt=F("attempt") + 1)
    return pending + requeue(rows.filter(state=Job.State.DONE))


def due(rows: QuerySet[J], now: datetime | None = None) -> QuerySet[J]:
    """Filter for the rows that can be claimed at `now`, by default the current time."""
    now = now or timezone.now()
    free = Q(locked_until=None) | Q(locked_until__lt=now)
    return rows.filter(free, state=Job.State.PENDING, due_at__lte=now)


def wake_worker_on_commit(task_name: str, *, module: str = "memory.tasks") -> None:
    """Send the Celery task once the current transaction is committed.

    The rows already hold the work, so a lost wake-up only delays it until the next sweep.
    """
    transaction.on_commit(lambda: _send_task(f"{module}.{task_name}"))


def _send_task(name: str) -> None:
    if settings.REDIS_URL is None:
        return
    from celery import current_app
    from kombu.exceptions import OperationalError

    try:
        current_app.send_task(name)
    except OperationalError as error:
        log.warning("could not send the task %s (%s); the next sweep does its work", name, type(error).__name__)

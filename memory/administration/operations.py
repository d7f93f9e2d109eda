"""Operations: long administrative jobs that workers run in batches, so that they resume after a crash."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import jobs, maintenance, signals
from memory.administration import retention
from memory.documents.deletion import cleanup_documents, forget_documents
from memory.errors import CatoError, InvalidInputError, NotFoundError
from memory.exchanges import erasure, forgetting
from memory.index import purge, reconcile, store
from memory.jobs import Lease, LeaseLostError
from memory.models import Chunk, Document, ErasureJob, Exchange, Job, Operation
from memory.spaces import access
from memory.utils.batching import batched
from memory.utils.formatting import format_number

M = TypeVar("M", bound=Model)

log = logging.getLogger(__name__)

Kind = Operation.Kind
_BATCH_SIZE = 200
# The ids are in the row of the operation.
_MAX_DELETED = 100_000
_WRITE_INTERVAL = 0.5  # seconds
# Kinds that run one at a time: a second run is useless, or the two would undo each other's work.
_EXCLUSIVE_KINDS = (Kind.BACKFILL, Kind.RECONCILE, Kind.ERASE, Kind.RETENTION)


class Progress:
    """Count the progress of an operation and write it to its row, which renews the lease."""

    def __init__(self, lease: Lease[Operation]) -> None:
        self._lease, operation = lease, lease.job
        self._done, self._counts = operation.processed, dict(operation.counts)
        self._written_at = time.monotonic()

    def __call__(self, what: str, count: int) -> None:
        """Add to a count, as a progress callback. Raises LeaseLostError."""
        self._counts[what] = self._counts.get(what, 0) + count
        self._done += count
        if time.monotonic() - self._written_at > _WRITE_INTERVAL:
            self.update()

    def update(self, **changed: object) -> None:
        """Write the progress and other changed fields, at once. Raises LeaseLostError."""
        self._written_at = time.monotonic()
        self._lease.renew(**(self._progress() | changed))

    def finish(self) -> None:
        """Mark the operation as done. Raises LeaseLostError."""
        self._lease.finish(finished_at=timezone.now(), **self._progress())

    def _progress(self) -> dict[str, object]:
        return {"processed": self._done, "counts": self._counts}


@transaction.atomic
def create_operation(
    kind: Kind, *, by: uuid.UUID, parameters: Mapping[str, Any] | None = None, total: int | None = None
) -> Operation:
    """Create an operation and wake a worker after the commit.

    Raises InvalidInputError if an operation of a kind that runs alone is already pending.
    """
    if kind in _EXCLUSIVE_KINDS and Operation.objects.filter(kind=kind, state=Job.State.PENDING).exists():
        raise InvalidInputError(_("“%(what)s” is already running.") % {"what": kind.label})
    now = timezone.now()
    operation = Operation.objects.create(
        kind=kind, parameters=dict(parameters or {}), created_by_id=by, created_at=now, due_at=now, total=total
    )
    jobs.wake_worker_on_commit("run_operations")
    transaction.on_commit(lambda: signals.operation_created.send(sender=None, operation=operation))
    return operation


def create_deletion(kind: Kind, rows: QuerySet[M], *, by: uuid.UUID) -> Operation:
    """Create an operation that forgets exactly these exchanges or documents, as they match the filters of a list now.

    Raises InvalidInputError if there are too many.
    """
    ids = [str(id) for id in rows.values_list("pk", flat=True)[: _MAX_DELETED + 1]]
    if len(ids) > _MAX_DELETED:
        sentence = _("At most %(most)s at once. Narrow the list, for example by dates.")
        raise InvalidInputError(sentence % {"most": format_number(_MAX_DELETED)})
    return create_operation(kind, by=by, parameters={"ids": ids}, total=len(ids))


def get_operation(operation_id: uuid.UUID) -> Operation:
    """Return the operation. Raises NotFoundError."""
    operation = Operation.objects.select_related("created_by").filter(pk=operation_id).first()
    if operation is None:
        raise NotFoundError(_("There is no such maintenance task."))
    return operation


def list_operations() -> QuerySet[Operation]:
    """Return all operations, newest first."""
    return Operation.objects.select_related("created_by").order_by("-created_at", "id")


@transaction.atomic
def cancel(operation: Operation) -> bool:
    """Stop the operation; work already done remains. Returns False if it had ended."""
    row = Operation.objects.filter(pk=operation.pk)
    if not jobs.cancel(row.filter(state=Job.State.PENDING)):
        return False
    now = timezone.now()
    row.update(cancelled_at=now, finished_at=now)
    return True


@transaction.atomic
def retry(operation: Operation) -> bool:
    """Resume a failed operation. Returns False if it has not failed."""
    failed = Operation.objects.filter(pk=operation.pk, state=Job.State.FAILED)
    if not jobs.requeue(failed):
        return False
    Operation.objects.filter(pk=operation.pk).update(finished_at=None)
    jobs.wake_worker_on_commit("run_operations")
    return True


def enqueue_retention_if_due() -> bool:
    """Create the daily retention operation. Returns False if it is not due."""
    by = retention.due_rule_author()
    if by is None:
        return False
    create_operation(Kind.RETENTION, by=by, parameters={"days": retention.get_rules()})
    return True


def run_operations() -> int:
    """Run operations until none is due; return how many finished. Safe to repeat, and from any process."""
    finished = 0
    while claimed := jobs.claim(Operation.objects.order_by("due_at", "created_at"), 1):
        finished += _run(claimed[0])
    return finished


def count_pending_erasures(operation: Operation) -> int:
    """Return how many exchanges forgotten by the operation are not yet verified as erased."""
    exchanges = Exchange.objects.filter(forgotten_by_operation=operation, erased_at=None).count()
    documents = operation.parameters.get("deleted", [])
    if not documents:
        return exchanges
    chunks = Chunk.objects.filter(version__document_id__in=documents, exchange__erased_at=None)
    return exchanges + chunks.values("exchange_id").distinct().count()


def count_failed_erasures(operation: Operation) -> int:
    """Return how many exchanges forgotten by the operation could not be erased after several attempts."""
    documents = Chunk.objects.filter(version__document_id__in=operation.parameters.get("deleted", [])).values(
        "exchange_id"
    )
    forgotten = Q(exchange__forgotten_by_operation=operation) | Q(exchange_id__in=documents)
    return ErasureJob.objects.filter(forgotten, state=Job.State.FAILED).count()


def _run(operation: Operation) -> bool:
    progress = Progress(Lease(operation))
    try:
        _WORK[Kind(operation.kind)](operation, progress)
        progress.finish()
    except LeaseLostError:
        return False
    except InvalidInputError as error:
        _release_for_retry(operation, str(error), final=True)
        return False
    except CatoError as error:
        _release_for_retry(operation, str(error))
        return False
    except Exception as error:  # logged in full and shown on its page; a worker that crashed here would retry forever
        log.exception("the operation %s failed", operation.pk)
        reason = _("Something went wrong in Cato itself (%(error)s). See the worker log.")
        _release_for_retry(operation, reason % {"error": type(error).__name__})
        return False
    return True


def _release_for_retry(operation: Operation, reason: str, *, final: bool = False) -> None:
    if jobs.release_for_retry(operation, reason, counts=True, final=final):
        failed = Operation.objects.filter(pk=operation.pk, state=Job.State.FAILED)
        failed.update(finished_at=timezone.now())


def _forget(operation: Operation, progress: Progress) -> None:
    for ids in batched(operation.parameters["ids"], _BATCH_SIZE):
        _ensure_may_delete(operation)
        _forget_all(Exchange.objects.filter(pk__in=ids, forgotten_at=None), operation, progress)
    progress.update(parameters={})


def _ensure_may_delete(operation: Operation) -> None:
    """Raise InvalidInputError if who started the operation is not an active administrator any more."""
    if not access.is_administrator(operation.created_by_id):
        sentence = _("%(name)s is no longer an administrator. Select again what is left to be deleted.")
        raise InvalidInputError(sentence % {"name": operation.created_by})


def _forget_all(rows: QuerySet[Exchange], operation: Operation, progress: Progress) -> None:
    while ids := list(rows.values_list("pk", flat=True)[:_BATCH_SIZE]):
        with transaction.atomic():
            forgotten = forgetting.forget(ids, by=operation.created_by_id, operation=operation)
            progress("exchanges", len(forgotten))
            progress.update()


def _forget_documents(operation: Operation, progress: Progress) -> None:
    for ids in batched(operation.parameters["ids"], _BATCH_SIZE):
        _ensure_may_delete(operation)
        _delete_all(Document.objects.filter(pk__in=ids, forgotten_at=None), operation, progress)
    progress.update(parameters={"deleted": operation.parameters.get("deleted", [])})


def _delete_all(rows: QuerySet[Document], operation: Operation, progress: Progress) -> None:
    """Delete the documents in batches.

    Each batch adds its ids to the operation, from which the receipt is counted.
    """
    while ids := list(rows.values_list("pk", flat=True)[:_BATCH_SIZE]):
        with transaction.atomic():
            deleted = forget_documents(ids, by=operation.created_by_id)
            operation.parameters["deleted"] = [*operation.parameters.get("deleted", []), *map(str, ids)]
            progress("documents", deleted)
            progress.update(parameters=operation.parameters)


def _retain(operation: Operation, progress: Progress) -> None:
    rules = operation.parameters["days"]
    for documents in retention.documents_too_old(rules, at=operation.created_at):
        _delete_all(documents, operation, progress)
    for exchanges in retention.exchanges_too_old(rules, at=operation.created_at):
        _forget_all(exchanges, operation, progress)


def _backfill(operation: Operation, progress: Progress) -> None:
    report = maintenance.backfill(progress=progress)
    if report.error:  # without one, what waits has only just been added
        sentence = _("Not embedded: %(failed)s failed, %(waiting)s waiting. %(error)s")
        numbers = {"failed": format_number(report.failed), "waiting": format_number(report.waiting)}
        raise CatoError(sentence % (numbers | {"error": report.error}))


def _reconcile(operation: Operation, progress: Progress) -> None:
    report = reconcile.reconcile(dry_run=bool(operation.parameters.get("is_dry_run")), progress=progress)
    progress.update(
        parameters=operation.parameters | {"found": {name: getattr(report, name) for name in type(report).__slots__}}
    )


def _erase(operation: Operation, progress: Progress) -> None:
    cleanup_documents()
    while erased := erasure.erase_forgotten(_BATCH_SIZE):
        progress("forgotten exchanges", erased)
    purge.purge_all(progress=progress)
    store.request_file_cleanup()
    erasure.ensure_erased()


_WORK: dict[Kind, Callable[[Operation, Progress], None]] = {
    Kind.FORGET: _forget,
    Kind.FORGET_DOCUMENTS: _forget_documents,
    Kind.RETENTION: _retain,
    Kind.BACKFILL: _backfill,
    Kind.RECONCILE: _reconcile,
    Kind.ERASE: _erase,
}

"""The sweep and the backfill, which find due work without wake-ups. Any process may run them at any time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from memory import jobs
from memory.documents.deletion import cleanup_documents
from memory.documents.extraction_runs import has_due_extraction
from memory.documents.publishing import publish_ready_versions
from memory.errors import VectorStoreDisabledError
from memory.exchanges.erasure import erase_forgotten
from memory.index import generations
from memory.index.indexing import index_pending
from memory.index.placement import vacate_former_collections
from memory.index.purge import purge_overdue
from memory.index.reconcile import (
    ProgressCallback,
    index_missing_terms,
    no_progress,
    queue_missing_vectors,
    queue_unindexed,
)
from memory.models import Collection, EmbeddingJob, Exchange, IndexGeneration, Job, Operation
from memory.retrieval.tuning.probe_fitting import fit_missing_probes

_BATCH_SIZE = 500
# Limit of exchanges that a sweep embeds itself, so that its other work is not delayed. A worker embeds the rest.
_SWEEP_LIMIT = 64
_PAUSE = 0.2  # seconds to wait while workers have leased the remaining rows


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """Numbers of exchanges that are embedded, waiting and permanently failed, and one of the errors."""

    done: int
    waiting: int
    failed: int
    error: str


def _index_due() -> None:
    if index_pending(limit=_SWEEP_LIMIT) >= _SWEEP_LIMIT:
        jobs.wake_worker_on_commit("index_pending")


def _wake_for_operations() -> None:
    if jobs.has_due(Operation.objects.all()):
        jobs.wake_worker_on_commit("run_operations")


def _wake_for_extraction() -> None:
    if has_due_extraction():
        # A worker extracts the text. Here it would delay the next sweep by up to the time limit of an extraction.
        jobs.wake_worker_on_commit("read_documents")


# What a sweep does, in this order. Each step is run whether or not the ones before it succeeded.
SWEEP_STEPS: tuple[Callable[[], object], ...] = (
    generations.replace_uninstalled_model,
    vacate_former_collections,
    fit_missing_probes,
    _index_due,
    publish_ready_versions,
    cleanup_documents,
    erase_forgotten,
    generations.activate_built_generation,
    generations.drop_uninstalled_generations,
    purge_overdue,
    _wake_for_operations,
    _wake_for_extraction,
)


def backfill(*, progress: ProgressCallback = no_progress) -> BackfillReport:
    """Embed all exchanges without a vector, including failed ones, and index missing terms.

    If the model of the active index is not installed any more, the index of the configured model is built instead. The
    call can be interrupted and repeated, and can run at the same time as workers. Raises VectorStoreUnavailableError and
    VectorStoreDisabledError.
    """
    generations.replace_uninstalled_model()
    index_missing_terms(progress=progress)
    queue_unindexed()
    current = EmbeddingJob.objects.filter(
        exchange__forgotten_at=None, generation__in=generations.writable_generations()
    )
    jobs.requeue(current.filter(state=Job.State.FAILED))
    for collection in Collection.objects.filter(generation__in=generations.writable_generations()).order_by("pk"):
        queue_missing_vectors(collection, progress=progress)
    return embed_queued(progress=progress)


def embed_queued(
    *, generation: IndexGeneration | None = None, progress: ProgressCallback = no_progress
) -> BackfillReport:
    """Embed queued exchanges of all generations whose model is installed; stop when the rest waits after an error.

    `generation`: stop when the rest of this one does, and report what of it waits and failed. Raises
    VectorStoreDisabledError.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError
    rows = _current_jobs() if generation is None else _current_jobs().filter(generation=generation)
    pending = rows.filter(state=Job.State.PENDING)
    embedded = 0
    while remaining := pending.count():
        count = index_pending(limit=_BATCH_SIZE)
        embedded += count
        progress("embedded", count)
        if not count:
            postponed = pending.filter(locked_until=None).exclude(error="").count()
            if postponed == remaining:
                break
            time.sleep(_PAUSE)
    failed = rows.filter(state=Job.State.FAILED)
    with_error = (failed | pending).exclude(error="").first()
    return BackfillReport(embedded, pending.count(), failed.count(), with_error.error if with_error else "")


def count_queued() -> int:
    """Return the number of exchanges that wait to be embedded, counted once for each generation."""
    return _current_jobs().filter(state=Job.State.PENDING).count()


def count_unembedded_imports(*, owner_id: uuid.UUID, start: datetime, end: datetime) -> int:
    """Return the number of exchanges that this person imported in this period and that wait to be embedded."""
    return (
        EmbeddingJob.objects.filter(state=Job.State.PENDING, generation=generations.active_generation())
        .filter(exchange__owner_id=owner_id, exchange__source=Exchange.Source.IMPORT, exchange__forgotten_at=None)
        .filter(exchange__created_at__range=(start, end))
        .count()
    )


def _current_jobs() -> QuerySet[EmbeddingJob]:
    return EmbeddingJob.objects.filter(exchange__forgotten_at=None, generation__in=generations.embeddable_generations())

"""Embed due exchanges in batches and store their vectors in the collections of their spaces."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from numpy.typing import NDArray

from memory import jobs, signals
from memory.documents.publishing import publish_ready_versions
from memory.embeddings import cache
from memory.errors import (
    EmbeddingError,
    EmbeddingModelUnavailableError,
    VectorStoreDisabledError,
    VectorStoreRequestError,
    VectorStoreUnavailableError,
)
from memory.filters import chroma_fields
from memory.index import embedding_policy, generations, placement, store
from memory.index.claiming import claim_next
from memory.index.parts import embedding_texts
from memory.index.vectors import all_vector_ids, set_apart, vector_ids
from memory.models import Collection, DocumentVersion, EmbeddingJob, Exchange, IndexGeneration, Job, Record

log = logging.getLogger(__name__)


def index_pending(limit: int | None = None) -> int:
    """Embed due exchanges until none is left or `limit` is reached; return the number embedded.

    Conversations and notes come first, oldest first. Imports, records of programs and a new index generation follow, then
    documents; of eight batches, one is of the former and one of the latter even if messages wait. For chunks, people take
    turns by batch, and each person's shortest document comes first. A complete document is published at once. Failures
    are stored on the rows and retried later, not raised.
    """
    done = 0
    if not settings.CATO.vector_store.enabled:
        return 0
    for batch in count(1):
        if limit is not None and done >= limit:
            break
        claimed = claim_next(batch)
        if not claimed:
            break
        for collection, rows in _group_by_collection(claimed).items():
            done += _index_batch(rows, collection)
            placement.count_vectors(collection, {row.exchange.space_id for row in rows})
            placement.rebalance(collection)
        if chunks := [row.exchange_id for row in claimed if row.exchange.source_file]:
            publish_ready_versions(DocumentVersion.objects.filter(chunks__exchange__in=chunks))
    return done


def retry_failed(rows: QuerySet[EmbeddingJob]) -> int:
    """Requeue the failed ones of these embeddings; return their number."""
    count = jobs.requeue(rows.filter(state=Job.State.FAILED))
    jobs.wake_worker_on_commit("index_pending")
    return count


def _group_by_collection(rows: list[EmbeddingJob]) -> dict[Collection, list[EmbeddingJob]]:
    collections: dict[tuple[uuid.UUID, int], Collection] = {}
    grouped: dict[Collection, list[EmbeddingJob]] = defaultdict(list)
    for row in rows:
        key = row.exchange.space_id, row.generation_id
        if key not in collections:
            collections[key] = placement.get_collection(row.exchange.space, row.generation)
        grouped[collections[key]].append(row)
    return grouped


def _index_batch(rows: list[EmbeddingJob], collection: Collection) -> int:
    """Embed exchanges and store them in the collection of their spaces; return the number indexed."""
    try:
        vectors = _get_vectors(rows[0].generation, [row.exchange for row in rows])
        _delete_outdated_vectors(rows, collection)
        owned = _record_collection(rows, collection)
        # The texts of the others can have been erased or changed before their vectors were cached.
        cache.delete_unreferenced([row.exchange.content_hash for row in rows if row.pk not in owned])
        ids, flat_vectors, fields = [], [], []
        for row, parts in zip(rows, vectors, strict=True):
            if row.pk not in owned:
                continue
            row.parts = len(parts)
            ids += vector_ids(row.exchange_id, row.exchange.version, len(parts))
            flat_vectors += list(parts)
            fields += [chroma_fields(row.exchange, row.exchange.metadata)] * len(parts)
        if ids:
            store.upsert(collection.name, ids, set_apart(ids, np.stack(flat_vectors)), fields)
    except VectorStoreRequestError as error:
        return _index_halves(rows, collection) if len(rows) > 1 else _release_for_retry(rows, str(error), counts=True)
    except (VectorStoreUnavailableError, VectorStoreDisabledError, EmbeddingModelUnavailableError) as error:
        return _release_for_retry(rows, str(error), counts=False)
    except EmbeddingError as error:
        if error.is_about_input and len(rows) > 1:
            return _index_halves(rows, collection)
        return _release_for_retry(rows, str(error), counts=True, final=error.permanent, after=error.retry_after)
    return _mark_indexed([row for row in rows if row.pk in owned], collection)


def _index_halves(rows: list[EmbeddingJob], collection: Collection) -> int:
    """Index a refused batch in two halves, so that only individually refused rows fail."""
    middle = len(rows) // 2
    return sum(_index_batch(half, collection) for half in (rows[:middle], rows[middle:]))


def _get_vectors(generation: IndexGeneration, exchanges: Sequence[Exchange]) -> list[NDArray[np.float32]]:
    """Return the vectors (parts, dimension) of each exchange: supplied with a record, cached, or newly embedded.

    What the model may not receive, and has no vectors yet, gets none.
    """
    supplied = get_record_vectors([e.pk for e in exchanges], generation)
    for vectors in supplied.values():
        generations.check_dimension(generation, int(vectors.shape[1]))
    cached = cache.get_documents(generation.provider, generation.model, [e.content_hash for e in exchanges])
    if cached:
        # The same model may have had another dimension when they were cached.
        dimension = generation.dimension or generations.embedder_for(generation).dimension
        cached = {digest: vectors for digest, vectors in cached.items() if vectors.shape[1] == dimension}
    for vectors in cached.values():
        generations.check_dimension(generation, int(vectors.shape[1]))
    missing = [e for e in exchanges if e.pk not in supplied and e.content_hash not in cached]
    permitted = embedding_policy.embeddable_spaces(generation.provider, {e.space for e in missing})
    if uncached := {e.content_hash: e for e in missing if e.space_id in permitted}:
        embedder = generations.embedder_for(generation)
        texts = {digest: embedding_texts(exchange) for digest, exchange in uncached.items()}
        position = {text: n for n, text in enumerate(dict.fromkeys(text for parts in texts.values() for text in parts))}
        embedded = embedder.embed_documents(list(position))
        generations.check_dimension(generation, int(embedded.shape[1]))
        new = {digest: embedded[[position[text] for text in parts]] for digest, parts in texts.items()}
        cache.store_documents(generation.provider, generation.model, new)
        cached |= new
    none = np.zeros((0, 0), dtype=np.float32)
    return [supplied[e.pk] if e.pk in supplied else cached.get(e.content_hash, none) for e in exchanges]


def _delete_outdated_vectors(rows: list[EmbeddingJob], collection: Collection) -> None:
    """Delete the vectors of these exchanges in other collections, and those of older versions.

    Vectors of the same version in the same collection are overwritten with their fields, also after a move between two
    spaces that share it.
    """
    outdated: dict[Collection, list[str]] = defaultdict(list)
    for row in rows:
        if row.collection is not None and row.collection != collection:
            outdated[row.collection] += all_vector_ids(row.exchange_id, row.exchange.version)
        elif row.collection is not None and row.exchange.version > 1:
            outdated[row.collection] += all_vector_ids(row.exchange_id, row.exchange.version - 1)
    for former, ids in outdated.items():
        if former != collection:
            # Its files keep the deleted vectors, and no later forgetting of these exchanges would mark it.
            generations.mark_purge_needed(Collection.objects.filter(pk=former.pk))
        store.delete(former.name, ids)


@transaction.atomic
def _record_collection(rows: list[EmbeddingJob], collection: Collection) -> set[int]:
    """Write the collection to the jobs, before their vectors are in it; return the keys of the jobs that remain.

    A job whose lease was lost is left out, and one whose space was placed elsewhere meanwhile is queued again.
    """
    attempts = dict(_lock_jobs(rows).values_list("pk", "attempt"))
    owned = {row.pk: row.exchange.space_id for row in rows if attempts.get(row.pk) == row.attempt}
    # Deleting the vectors in another collection may have come after the next worker had written them there.
    lost = [row.pk for row in rows if row.pk not in owned and row.collection not in (None, collection)]
    jobs.repeat(EmbeddingJob.objects.filter(pk__in=lost))
    placed = placement.lock_placed_spaces(collection, owned.values())
    jobs.requeue(EmbeddingJob.objects.filter(pk__in=[pk for pk, space_id in owned.items() if space_id not in placed]))
    remaining = {pk for pk, space_id in owned.items() if space_id in placed}
    EmbeddingJob.objects.filter(pk__in=remaining).update(collection=collection)
    return remaining


def _lock_jobs(rows: list[EmbeddingJob]) -> QuerySet[EmbeddingJob]:
    return EmbeddingJob.objects.select_for_update().filter(pk__in=[row.pk for row in rows])


def _mark_indexed(rows: list[EmbeddingJob], collection: Collection) -> int:
    """Mark the jobs of unchanged exchanges as done; return their number.

    Vectors of exchanges that were forgotten, changed or moved meanwhile are deleted, or overwritten by a repeated job.
    """
    indexed_ids: list[uuid.UUID] = []
    outdated_hashes: list[str] = []
    outdated_vectors: list[str] = []
    misplaced: list[EmbeddingJob] = []
    with transaction.atomic():
        exchanges = {
            e.id: e
            for e in Exchange.objects.select_for_update()
            .filter(id__in=[row.exchange_id for row in rows])
            .only("id", "version", "space_id", "forgotten_at")
            .order_by("id")
        }
        current_jobs = {job.pk: job for job in _lock_jobs(rows).only("pk", "attempt", "collection_id")}
        done: dict[tuple[int, int], list[EmbeddingJob]] = defaultdict(list)
        for row in rows:
            current, embedded, job = exchanges.get(row.exchange_id), row.exchange, current_jobs.get(row.pk)
            if current is None or current.forgotten_at:
                outdated_vectors += all_vector_ids(embedded.id, embedded.version)
            elif current.version != embedded.version:
                outdated_hashes.append(embedded.content_hash)
                outdated_vectors += vector_ids(embedded.id, embedded.version, row.parts)
            elif current.space_id != embedded.space_id:
                misplaced.append(row)
            elif job is not None and job.attempt == row.attempt:
                done[embedded.version, row.parts].append(row)
        for (version, parts), done_rows in done.items():
            EmbeddingJob.objects.filter(pk__in=[row.pk for row in done_rows]).update(
                state=Job.State.DONE, version=version, parts=parts, locked_until=None, failures=0, error=""
            )
            indexed_ids += [row.exchange_id for row in done_rows]
        # If a text changed meanwhile, its old vectors were cached after the change had cleared them.
        cache.delete_unreferenced(outdated_hashes)
        outdated_vectors += _settle_misplaced(misplaced, current_jobs, collection)
    if outdated_vectors:
        _delete_written(outdated_vectors, collection)
    if indexed_ids:
        signals.exchanges_indexed.send(sender=None, exchange_ids=indexed_ids)
    return len(indexed_ids)


def _delete_written(ids: list[str], collection: Collection) -> None:
    """Delete vectors from the collection; if that fails, its next rebuild does it, which copies those of live rows."""
    try:
        store.delete(collection.name, ids)
    except (VectorStoreUnavailableError, VectorStoreDisabledError) as error:
        log.warning("%d outdated vectors could not be deleted yet: %s", len(ids), error)
        generations.mark_purge_needed(Collection.objects.filter(pk=collection.pk))


def _settle_misplaced(
    rows: list[EmbeddingJob], current_jobs: Mapping[int, EmbeddingJob], collection: Collection
) -> list[str]:
    """Return the vectors that were just written for moved exchanges and are to be deleted from the collection.

    If the vectors belong into the same collection, only their field `space` is wrong. The job is then repeated, because
    the next worker may have written them before.
    """
    repeated, deleted = [], list[str]()
    for row in rows:
        job = current_jobs.get(row.pk)
        if job is not None and job.collection_id == collection.pk:
            repeated.append(row.pk)
        else:
            deleted += vector_ids(row.exchange_id, row.exchange.version, row.parts)
    jobs.repeat(EmbeddingJob.objects.filter(pk__in=repeated))
    if deleted:
        generations.mark_purge_needed(Collection.objects.filter(pk=collection.pk))
    return deleted


def _release_for_retry(
    rows: list[EmbeddingJob], error: str, *, counts: bool, final: bool = False, after: float | None = None
) -> int:
    """Release the rows for a retry; return 0, the number of indexed exchanges."""
    log.warning("%d exchanges could not be embedded: %s", len(rows), error)
    failed = [r.exchange_id for r in rows if jobs.release_for_retry(r, error, counts=counts, final=final, after=after)]
    signals.indexing_failed.send(sender=None, exchange_ids=[r.exchange_id for r in rows], final=bool(failed))
    return 0


def get_record_vectors(
    exchange_ids: Iterable[uuid.UUID], generation: IndexGeneration
) -> dict[uuid.UUID, NDArray[np.float32]]:
    """Return the vectors (1, dimension) that clients supplied with records for this generation, by exchange id."""
    rows = Record.objects.filter(exchange_id__in=list(exchange_ids), generation=generation).exclude(vector=None)
    return {row.exchange_id: np.frombuffer(bytes(row.vector or b""), dtype="<f4")[None] for row in rows}

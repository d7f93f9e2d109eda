"""Reconcile the database and the index: recreate missing entries and remove orphans."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Sum

from memory import jobs
from memory.documents.deletion import delete_orphaned_originals
from memory.index import generations, store
from memory.index.vectors import PARTS, vector_ids
from memory.lexical.indexing import index_terms
from memory.models import CachedEmbedding, Collection, EmbeddingJob, Exchange, IndexGeneration, Job, LexicalEntry, Space
from memory.utils.batching import iterate_by_pk

_PAGE = 500
_IDS = 1000
# Seconds. A process that fills a collection marks it as in use far more often.
ABANDONED = 120.0

# Called from time to time with the kind and number of the items processed since the last call.
ProgressCallback = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Drift:
    """Differences between the database and the active index generation; both are 0 when no work is pending."""

    rows_without_vector: int
    vectors_without_row: int


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """Numbers of repaired items, or of items to repair after a dry run."""

    queued: int
    vectors_removed: int
    collections_dropped: int
    words_written: int
    words_removed: int
    cached_removed: int
    files_removed: int


def no_progress(what: str, count: int) -> None:
    """Ignore the progress."""


def measure_drift() -> Drift:
    """Compare the vector counts of the rows with those of the collections, without reading vectors.

    Raises VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    generation = generations.active_generation()
    embedded = EmbeddingJob.objects.filter(generation=generation, exchange__forgotten_at=None)
    recorded = dict(embedded.exclude(collection=None).values_list("collection").annotate(n=Sum("parts")).order_by())
    missing = max(Exchange.objects.filter(forgotten_at=None).count() - embedded.count(), 0)
    surplus = 0
    for collection in generation.collections.all():
        difference = (recorded.get(collection.pk) or 0) - store.count(collection.name)
        missing, surplus = missing + max(difference, 0), surplus + max(-difference, 0)
    return Drift(rows_without_vector=missing, vectors_without_row=surplus)


def reconcile(*, dry_run: bool = False, progress: ProgressCallback = no_progress) -> ReconcileReport:
    """Compare rows, vectors, terms, cached embeddings and uploaded files, and repair the differences.

    The call is safe on a live system and can be repeated. Repairs made before an interruption are kept. `dry_run` only
    counts. Raises VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    queued, removed = queue_unindexed(dry_run=dry_run), 0
    for collection in Collection.objects.select_related("generation").order_by("pk"):
        if collection.generation.state != IndexGeneration.State.RETIRED:
            queued += queue_missing_vectors(collection, dry_run=dry_run, progress=progress)
        removed += delete_orphan_vectors(collection, dry_run=dry_run, progress=progress)
    if queued and not dry_run:
        jobs.wake_worker_on_commit("index_pending")
    return ReconcileReport(
        queued=queued,
        vectors_removed=removed,
        collections_dropped=drop_orphan_collections(dry_run=dry_run),
        words_written=index_missing_terms(dry_run=dry_run, progress=progress),
        words_removed=_delete_terms_of_forgotten(dry_run),
        cached_removed=delete_orphan_cache_entries(dry_run=dry_run, progress=progress),
        files_removed=delete_orphaned_originals(dry_run=dry_run),
    )


def queue_unindexed(*, dry_run: bool = False) -> int:
    """Queue exchanges without an embedding row, and finished rows without an index; return their number."""
    queued = 0
    for generation in generations.writable_generations():
        without_collection = EmbeddingJob.objects.filter(generation=generation, state=Job.State.DONE, collection=None)
        if dry_run:
            known = EmbeddingJob.objects.filter(generation=generation, exchange__forgotten_at=None).count()
            queued += max(Exchange.objects.filter(forgotten_at=None).count() - known, 0) + without_collection.count()
        else:
            queued += generations.enqueue_missing(generation) + jobs.requeue(without_collection)
    return queued


def queue_missing_vectors(
    collection: Collection, *, spare: str | None = None, dry_run: bool = False, progress: ProgressCallback = no_progress
) -> int:
    """Queue exchanges whose vectors are missing, outdated, or stored with another space; return their number.

    Vectors that the collection `spare` still has are copied from it instead. Exchanges that the embedding model may not
    receive have none.
    """
    queued = 0
    rows = EmbeddingJob.objects.filter(
        collection=collection, state=Job.State.DONE, exchange__forgotten_at=None, parts__gt=0
    )
    columns = ("pk", "exchange_id", "version", "parts", "exchange__version", "exchange__space_id")
    placed = list_placed_spaces(collection)
    for page in iterate_by_pk(rows.values_list(*columns), _PAGE):
        expected = {pk: vector_ids(exchange_id, version, parts) for pk, exchange_id, version, parts, *_ in page}
        spaces = _stored_spaces(collection, [id for ids in expected.values() for id in ids])
        existing = set(spaces)
        if spare is not None:
            missing = [id for ids in expected.values() for id in ids if id not in existing]
            existing |= copy_vectors(spare, collection.name, missing)
        incomplete = [
            pk
            for pk, _, version, _, newest, space_id in page
            if version != newest
            or space_id not in placed
            or not existing.issuperset(expected[pk])
            or any(spaces.get(id, str(space_id)) != str(space_id) for id in expected[pk])
        ]
        if incomplete and not dry_run:
            jobs.requeue(EmbeddingJob.objects.filter(pk__in=incomplete, state=Job.State.DONE))
        queued += len(incomplete)
        progress("exchanges", len(page))
    return queued


def list_placed_spaces(collection: Collection) -> set[uuid.UUID]:
    """Return the spaces whose new vectors belong into this collection."""
    return set(collection.placements.filter(is_current=True).values_list("space_id", flat=True))


def _stored_spaces(collection: Collection, ids: list[str]) -> dict[str, str]:
    """Return the space that is stored with each id of the collection; repeat if a rebuild has replaced the collection."""
    while True:
        name = collection.name
        spaces = store.stored_spaces(name, ids)
        if not spaces.keys() >= set(ids):
            collection.refresh_from_db(fields=["name"])
        if collection.name == name:
            return spaces


def copy_vectors(source: str, target: str, ids: list[str]) -> set[str]:
    """Copy vectors between collections in batches of 1,000; return the ids that the source had."""
    copied: set[str] = set()
    for start in range(0, len(ids), _IDS):
        copied |= store.copy(source, target, ids[start : start + _IDS])
    return copied


def delete_orphan_vectors(
    collection: Collection, *, dry_run: bool = False, progress: ProgressCallback = no_progress
) -> int:
    """Delete the vectors of this index that belong to no live row; return their number."""
    removed = offset = 0
    while ids := store.list_ids(collection.name, offset, _IDS):
        # A row is written before its vectors, so the rows are read after the ids.
        orphans = _orphan_ids(collection, ids)
        if orphans and not dry_run:
            generations.mark_purge_needed(Collection.objects.filter(pk=collection.pk))
            store.delete(collection.name, orphans)
        removed += len(orphans)
        offset += len(ids) - (0 if dry_run else len(orphans))
        progress("vectors", len(ids))
    return removed


def drop_orphan_collections(*, dry_run: bool = False) -> int:
    """Drop the collections of this installation that no row names and no process is filling; return their number."""
    prefix = f"{settings.CATO.vector_store.collection_name}-"
    pattern = re.compile(re.escape(prefix) + r"([0-9a-f]{32})-[0-9a-f]+(\.\d+)?")
    dropped = 0
    for name in store.collections(prefix, untouched_for=ABANDONED):
        found = pattern.fullmatch(name)
        # Another Cato installation may share the server. The name has the id of a space: see `placement`.
        if found is None or not Space.objects.filter(pk=uuid.UUID(found[1])).exists():
            continue
        if Collection.objects.filter(name=name).exists():
            continue
        if not dry_run:
            store.drop(name)
        dropped += 1
    if dropped and not dry_run:
        store.request_file_cleanup()
    return dropped


def index_missing_terms(*, dry_run: bool = False, progress: ProgressCallback = no_progress) -> int:
    """Index the terms of exchanges without any; return their number. Exchanges forgotten meanwhile are skipped."""
    missing = Exchange.objects.filter(forgotten_at=None, lexical_entry=None)
    if dry_run:
        return missing.count()
    written = 0
    for page in iterate_by_pk(missing, _PAGE):
        with transaction.atomic():
            exchanges = missing.filter(pk__in=[exchange.pk for exchange in page]).select_for_update(of=["self"])
            index_terms(exchanges)
            written += len(exchanges)
        progress("words", len(page))
    return written


def delete_orphan_cache_entries(*, dry_run: bool = False, progress: ProgressCallback = no_progress) -> int:
    """Delete the cached embeddings of texts that no live exchange has; return their number."""
    live = Exchange.objects.filter(content_hash=OuterRef("content_hash"), forgotten_at=None)
    removed = 0
    for page in iterate_by_pk(CachedEmbedding.objects.values_list("pk"), _PAGE):
        orphans = CachedEmbedding.objects.filter(~Exists(live), pk__in=[pk for (pk,) in page])
        removed += orphans.count() if dry_run else orphans.delete()[0]
        progress("cached embeddings", len(page))
    return removed


def _orphan_ids(collection: Collection, ids: Iterable[str]) -> list[str]:
    parsed = {id: _parse_vector_id(id) for id in ids}
    rows = EmbeddingJob.objects.filter(
        collection=collection,
        exchange_id__in={vector[0] for vector in parsed.values() if vector},
        exchange__forgotten_at=None,
    )
    states = {row[0]: _EmbeddingState(*row[1:]) for row in rows.values_list(*_STATE_COLUMNS)}
    return [
        id for id, vector in parsed.items() if vector is None or not _is_current(states.get(vector[0]), *vector[1:])
    ]


class _EmbeddingState(NamedTuple):
    state: str
    version: int
    parts: int
    newest: int


_STATE_COLUMNS = ("exchange_id", "state", "version", "parts", "exchange__version")


def _parse_vector_id(vector_id: str) -> tuple[uuid.UUID, str, int] | None:
    """Return exchange id, part and version of a vector id, or None if Cato did not create the id."""
    exchange_id, _, rest = vector_id.partition(":")
    part, _, version = rest.partition(":")
    try:
        return uuid.UUID(exchange_id), part, int(version)
    except ValueError:
        return None


def _is_current(row: _EmbeddingState | None, part: str, version: int) -> bool:
    if row is None:
        return False
    if row.state == Job.State.DONE:
        return version == row.version and part in PARTS[: row.parts]
    # While an exchange is embedded, the old vectors stay in use. The new ones may exist before the row records them.
    return version in (row.version, row.newest)


def _delete_terms_of_forgotten(dry_run: bool) -> int:
    forgotten = LexicalEntry.objects.exclude(exchange__forgotten_at=None)
    if dry_run:
        return forgotten.count()
    return sum(
        LexicalEntry.objects.filter(pk__in=[pk for (pk,) in page]).delete()[0]
        for page in iterate_by_pk(forgotten.values_list("pk"), _PAGE)
    )

"""Purge deleted data from the index and database files.

A deleted vector stays in the file of its collection. The live vectors are therefore copied to a new collection, which
replaces the old one. The old collection is dropped, and the Chroma host removes its files.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import datetime, timedelta

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from memory import jobs
from memory.errors import VectorStoreDisabledError, VectorStoreUnavailableError
from memory.index import placement, store
from memory.index.chroma import CollectionMissingError, ping_vector_store
from memory.index.generations import next_collection_name
from memory.index.reconcile import (
    ABANDONED,
    ProgressCallback,
    copy_vectors,
    delete_orphan_cache_entries,
    delete_orphan_vectors,
    drop_orphan_collections,
    list_placed_spaces,
    no_progress,
    queue_missing_vectors,
)
from memory.index.vectors import vector_ids
from memory.models import Collection, EmbeddingJob, Exchange, Job
from memory.utils.batching import iterate_by_pk

log = logging.getLogger(__name__)

_PAGE = 500
# Seconds. A search that has already read the old collection's name can still query it for this time.
_READER_GRACE = 0.5
_MAX_CHECKPOINTS = 20
# A vacuum copies the whole database before it fails on a full disk.
_RETRY_SECONDS = 3600.0
_next_attempt = 0.0


def purge_pending(*, before: datetime | None = None, progress: ProgressCallback = no_progress) -> int:
    """Rebuild every collection marked for purging, vacuum the database, and return the number of purged collections.

    `before` limits the call to collections that were marked at or before that time. The mark of a collection is cleared only
    after its rebuild and the vacuum. If the vacuum fails, the next call does not rebuild it again, but vacuums only. If
    Cato manages the Chroma server, it asks the server to remove the dropped files. The call can be interrupted and
    repeated. A collection that cannot be rebuilt does not stop the others. Raises VectorStoreUnavailableError,
    VectorStoreDisabledError and DatabaseError.
    """
    pending = Collection.objects.exclude(purge_needed_since=None)
    if before is not None:
        pending = pending.filter(purge_needed_since__lte=before)
    purged: list[tuple[Collection, datetime]] = []
    failure: VectorStoreUnavailableError | None = None
    try:
        for collection in pending.order_by("pk"):
            started_at = timezone.now()
            try:
                if _awaits_vacuum_only(collection) or rebuild_collection(collection, progress=progress):
                    purged.append((collection, started_at))
            except VectorStoreUnavailableError as error:
                ping_vector_store()  # without an answer, all others would fail as well, and each after a timeout
                failure = error
    finally:  # also if the vector store or this process ends meanwhile
        if purged:
            # Before the vacuum, which fails on a full disk. Once for all, because the supervisor stops Chroma to remove
            # the files.
            store.request_file_cleanup()
            for collection, started_at in purged:
                _note_rebuild(collection, started_at)
            delete_orphan_cache_entries()
            vacuum_database()
        for collection, started_at in purged:
            _clear_purge_flag(collection, started_at)
    if failure is not None:
        raise failure
    return len(purged)


def purge_overdue() -> int:
    """Purge the collections that were marked more than half of `erase_within_hours` ago; return their number.

    If the vector store is unavailable or disabled, log a warning and return 0. If the database cannot be vacuumed, log a
    warning, return 0, and do nothing for an hour.
    """
    global _next_attempt
    if time.monotonic() < _next_attempt:
        return 0
    deadline = timezone.now() - timedelta(hours=settings.CATO.vector_store.erase_within_hours) / 2
    if not Collection.objects.filter(purge_needed_since__lte=deadline).exists():
        return 0
    try:
        return purge_pending(before=deadline)
    except (VectorStoreUnavailableError, VectorStoreDisabledError) as error:
        log.warning("collections could not be rebuilt yet: %s", error)
        return 0
    except (DatabaseError, OSError) as error:
        _next_attempt = time.monotonic() + _RETRY_SECONDS
        log.warning("deleted data could not be purged; trying again in %g s: %s", _RETRY_SECONDS, error)
        return 0


def purge_all(*, progress: ProgressCallback = no_progress) -> int:
    """Drop orphan collections and cache entries, run `purge_pending`, and return the number of purged collections.

    The database is vacuumed even if no collection was marked for purging.
    """
    drop_orphan_collections()
    purged = purge_pending(progress=progress)
    if not purged:
        delete_orphan_cache_entries()
        vacuum_database()
    return purged


def rebuild_collection(collection: Collection, *, progress: ProgressCallback = no_progress) -> bool:
    """Copy the live vectors to a new collection, swap it in, and drop the old one, whose files the caller has removed.

    Return False if another process is rebuilding the collection. A rebuild interrupted before the swap starts again.
    After the swap, the next one or `drop_orphan_collections` removes the old collection.
    """
    source, target = collection.name, next_collection_name(collection.name)
    if not store.recreate_collection(target, unless_touched_within=ABANDONED):
        return False
    if (former := next_collection_name(source, step=-1)) != source:
        store.drop(former)  # left by a rebuild that was interrupted after its swap
    alive = EmbeddingJob.objects.filter(collection=collection, exchange__forgotten_at=None)
    # Queued exchanges with an unchanged text are on their way to another collection and found here until then.
    alive = alive.filter(Q(state=Job.State.DONE) | Q(state=Job.State.PENDING, version=F("exchange__version")))
    for page in iterate_by_pk(alive.values_list("pk", "exchange_id", "version", "parts"), _PAGE):
        store.mark_in_use(target)
        copy_vectors(
            source,
            target,
            [id for _, exchange_id, version, parts in page for id in vector_ids(exchange_id, version, parts)],
        )
        progress("exchanges", len(page))
    # No row names the source after the swap. The mark keeps other processes from dropping it as an orphan.
    with suppress(CollectionMissingError):
        store.mark_in_use(source)
    if not _switch(collection, source, target):
        store.drop(target)
        return False
    # Exchanges can be added, changed or forgotten during the copy.
    queue_missing_vectors(collection, spare=source)
    delete_orphan_vectors(collection)
    placement.count_vectors(collection, list_placed_spaces(collection))
    time.sleep(_READER_GRACE)
    store.drop(source)
    return True


def vacuum_database() -> None:
    """Rewrite the database files so that no page contains deleted data.

    On SQLite, log a warning if readers prevent the truncation of the write-ahead log in 20 attempts.
    """
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":
            # ANALYZE is needed because the planner's statistics contain samples of the texts.
            for table in sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)}):
                cursor.execute(f"VACUUM (FULL, ANALYZE) {connection.ops.quote_name(table)}")
            return
        cursor.execute("INSERT INTO memory_terms_index(memory_terms_index) VALUES ('optimize')")
        cursor.execute("VACUUM")
        for _ in range(_MAX_CHECKPOINTS):
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if not cursor.fetchone()[0]:
                return
            time.sleep(_READER_GRACE)  # a reader still uses the log
    log.warning("the write-ahead log was not truncated: readers used it during %d attempts", _MAX_CHECKPOINTS)


@transaction.atomic
def _switch(collection: Collection, source: str, target: str) -> bool:
    if not Collection.objects.filter(pk=collection.pk, name=source).update(name=target):
        return False
    collection.name = target
    # Workers that are embedding now use the old collection name. A new attempt number voids their results.
    involved = Q(collection=collection) | Q(exchange__space__in=collection.placements.values("space"))
    leased = EmbeddingJob.objects.filter(state=Job.State.PENDING, locked_until__gt=timezone.now())
    jobs.requeue(leased.filter(involved, generation=collection.generation_id))
    return True


def _awaits_vacuum_only(collection: Collection) -> bool:
    """Return True if an earlier call rebuilt the collection, and failed to vacuum the database."""
    return collection.last_marked_at is None


def _note_rebuild(collection: Collection, started_at: datetime) -> None:
    """Note that the collection needs no rebuild, unless vectors or exchanges of its spaces were deleted since then."""
    if not _has_forgotten_since(collection, started_at):
        # The filter keeps a mark that was set meanwhile.
        row = Collection.objects.filter(pk=collection.pk, last_marked_at=collection.last_marked_at)
        row.update(last_marked_at=None)


def _clear_purge_flag(collection: Collection, started_at: datetime) -> None:
    """Clear the purge mark, or set it to `started_at` if vectors or exchanges of its spaces were deleted since then."""
    row = Collection.objects.filter(pk=collection.pk)
    is_marked_again = (
        _has_forgotten_since(collection, started_at) or row.filter(last_marked_at__gte=started_at).exists()
    )
    row.update(purge_needed_since=started_at if is_marked_again else None)


def _has_forgotten_since(collection: Collection, started_at: datetime) -> bool:
    """Return True if exchanges of its spaces were forgotten or erased since then, or are not erased yet."""
    forgotten = Exchange.objects.filter(space__placements__collection=collection).exclude(forgotten_at=None)
    unpurged = Q(forgotten_at__gte=started_at) | Q(erased_at__gte=started_at) | Q(erased_at=None)
    return forgotten.filter(unpurged).exists()

"""Making forgetting physical: indexes that held something forgotten are made anew, the database is written anew.

A vector that was deleted stays in the index's file. So what is alive goes into a new collection beside, which takes
the old one's place; the old one is dropped, and whoever runs Chroma removes its files.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from memory import jobs
from memory.errors import VectorStoreDisabledError, VectorStoreUnavailableError
from memory.index import store
from memory.index.generations import next_collection_name
from memory.index.reconcile import (
    ABANDONED,
    ProgressCallback,
    copy_vectors,
    delete_orphan_cache_entries,
    delete_orphan_vectors,
    drop_orphan_collections,
    no_progress,
    queue_missing_vectors,
)
from memory.index.vectors import vector_ids
from memory.models import Embedding, Exchange, Index, Job
from memory.utils.batching import iterate_by_pk

log = logging.getLogger(__name__)

_PAGE = 500
# Seconds in which a search that has read the old collection's name asks it.
_GRACE = 0.5
_CHECKPOINTS = 20
_TABLES = (
    "memory_exchange",
    "memory_hiddenpassage",
    "memory_words",
    "memory_metadatavalue",
    "memory_record",
    "memory_recall",
    "memory_opinion",
    "memory_embedding",
    "memory_erasure",
    "memory_cachedembedding",
)


def purge_pending(*, before: datetime | None = None, progress: ProgressCallback = no_progress) -> int:
    """Make anew every index from which something was forgotten (before that time), and the database; returns how many.

    An index is marked as clean only when all this has happened. Where a server of Cato's own holds the files, it is
    asked to remove what was dropped. May be broken off and called again. Raises VectorStoreUnavailableError, VectorStoreDisabledError.
    """
    soiled = Index.objects.exclude(soiled_at=None)
    if before is not None:
        soiled = soiled.filter(soiled_at__lte=before)
    renewed = 0
    for index in soiled.select_related("space", "generation").order_by("pk"):
        begun = timezone.now()
        if not rebuild_collection(index, progress=progress):
            continue
        if not renewed:
            delete_orphan_cache_entries()
            vacuum_database()
        renewed += 1
        _clear_purge_flag(index, begun)
    return renewed


def purge_overdue() -> int:
    """What the sweep erases: indexes whose time, half of `erase_within_hours`, is over. Returns how many."""
    limit = timezone.now() - timedelta(hours=settings.CATO.vector_store.erase_within_hours) / 2
    if not Index.objects.filter(soiled_at__lte=limit).exists():
        return 0
    try:
        return purge_pending(before=limit)
    except (VectorStoreUnavailableError, VectorStoreDisabledError) as error:
        log.warning("indexes could not be made anew yet: %s", error)
        return 0


def purge_all(*, progress: ProgressCallback = no_progress) -> int:
    """As `purge_pending`, and what nobody names or says is removed too, whether or not anything was forgotten."""
    drop_orphan_collections()
    renewed = purge_pending(progress=progress)
    if not renewed:
        delete_orphan_cache_entries()
        vacuum_database()
    return renewed


def rebuild_collection(index: Index, *, progress: ProgressCallback = no_progress) -> bool:
    """Copy what is alive into a new collection, let it take the place of the old one, drop that; False: it is being done.

    Broken off before the switch, it begins again; after it, what was left is dropped with the unnamed ones.
    """
    source, target = index.collection, next_collection_name(index.collection)
    if not store.recreate_collection(target, unless_touched_within=ABANDONED):
        return False
    alive = Embedding.objects.filter(index=index, state=Job.State.DONE, exchange__forgotten_at=None)
    for page in iterate_by_pk(alive.values_list("pk", "exchange_id", "version", "parts"), _PAGE):
        store.mark_in_use(target)
        copy_vectors(
            source,
            target,
            [id for _, exchange_id, version, parts in page for id in vector_ids(exchange_id, version, parts)],
        )
        progress("exchanges", len(page))
    # From the switch on no row names the source, and it is dropped here, not as one that is left over.
    with suppress(store.CollectionMissingError):
        store.mark_in_use(source)
    if not _switch(index, source, target):
        store.drop(target)
        return False
    # What came, changed or was forgotten while the copy was made.
    queue_missing_vectors(index, spare=source)
    delete_orphan_vectors(index)
    time.sleep(_GRACE)
    store.drop(source)
    store.request_file_cleanup()
    return True


def vacuum_database() -> None:
    """Let no page of the database's files hold what was deleted from it."""
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":
            # ANALYZE as well: samples of what was said stand in the planner's statistics.
            for table in _TABLES:
                cursor.execute(f"VACUUM (FULL, ANALYZE) {table}")
            return
        cursor.execute("INSERT INTO memory_words_index(memory_words_index) VALUES ('optimize')")
        cursor.execute("VACUUM")
        for _ in range(_CHECKPOINTS):
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if not cursor.fetchone()[0]:
                return
            time.sleep(_GRACE)  # somebody still reads
    log.warning("the write-ahead log of the database could not be emptied: somebody reads all the time")


@transaction.atomic
def _switch(index: Index, source: str, target: str) -> bool:
    if not Index.objects.filter(pk=index.pk, collection=source).update(collection=target):
        return False
    index.collection = target
    # Whoever is embedding at this moment knows the old name: what they note is void, and is done again.
    jobs.requeue(
        Embedding.objects.filter(
            exchange__space_id=index.space_id,
            generation_id=index.generation_id,
            state=Job.State.PENDING,
            locked_until__gt=timezone.now(),
        )
    )
    return True


def _clear_purge_flag(index: Index, begun: datetime) -> None:
    """Clean, except of what was forgotten or deleted since it was begun."""
    since = Exchange.objects.filter(space_id=index.space_id).exclude(forgotten_at=None)
    since = since.filter(Q(forgotten_at__gte=begun) | Q(erased_at__gte=begun) | Q(erased_at=None))
    Index.objects.filter(pk=index.pk).update(soiled_at=begun if since.exists() else None)

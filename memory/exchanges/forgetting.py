"""Forget exchanges: from this moment on they are not found, and their erasure is queued."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from memory import jobs, signals
from memory.embeddings import cache
from memory.events import record_events
from memory.exchanges.erasure import TEXT_HASH, passage_hash
from memory.exchanges.requeueing import requeue_changed
from memory.exchanges.supersessions import delete_supersessions
from memory.index import generations, placement
from memory.knowledge.sources import delete_statements, drop_sources, lock_with_statements
from memory.lexical.indexing import delete_entries
from memory.models import (
    Chunk,
    Collection,
    EmbeddingJob,
    ErasureJob,
    Event,
    Exchange,
    Feedback,
    LexicalEntry,
    MetadataValue,
    Operation,
    RecallLogEntry,
    Record,
    Space,
)
from memory.utils.batching import batched

_BATCH_SIZE = 100
# Field values of an erased exchange.


@transaction.atomic
def forget(
    exchange_ids: Iterable[uuid.UUID],
    *,
    by: uuid.UUID,
    as_part_of_a_document: bool = False,
    operation: Operation | None = None,
) -> list[uuid.UUID]:
    """Make these exchanges tombstones, unreadable after the commit; return the ids that were not forgotten before.

    The caller has checked that `by` may forget them. A worker erases vectors, cached embeddings and texts later.
    `as_part_of_a_document`: `by` deleted or replaced a document, which has its own signal and events. `operation`: the bulk
    operation whose receipt counts these exchanges.
    """
    exchange_ids = list(exchange_ids)
    lock_with_statements(exchange_ids)
    forgotten: list[uuid.UUID] = []
    statements: list[uuid.UUID] = []
    for batch in batched(exchange_ids, _BATCH_SIZE):
        ids, unsupported = _forget_batch(batch, by, operation, has_events=not as_part_of_a_document)
        forgotten += ids
        statements += _forget_batch(unsupported, by, operation, has_events=True)[0] if unsupported else []
    if forgotten:
        _flag_collections_for_purge([*forgotten, *statements])
        cache.clear_query_cache()
        jobs.wake_worker_on_commit("erase_forgotten")
        _send_on_commit(forgotten, by=by, by_itself=not as_part_of_a_document and operation is None)
        _send_on_commit(statements, by=by, by_itself=False)
    return forgotten


def _send_on_commit(exchange_ids: list[uuid.UUID], *, by: uuid.UUID, by_itself: bool) -> None:
    if exchange_ids:
        facts = {"exchange_ids": exchange_ids, "by": by, "by_itself": by_itself}
        transaction.on_commit(lambda: signals.exchanges_forgotten.send(sender=None, **facts))


def forgotten_ids(exchange_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of the ids whose exchanges are forgotten."""
    rows = Exchange.objects.filter(id__in=list(exchange_ids)).exclude(forgotten_at=None)
    return set(rows.values_list("id", flat=True))


def _forget_batch(
    exchange_ids: Sequence[uuid.UUID], by: uuid.UUID, operation: Operation | None, *, has_events: bool
) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Forget the exchanges; return their ids, and those of the statements to be forgotten with them."""
    now = timezone.now()
    exchanges = list(Exchange.objects.select_for_update().filter(id__in=exchange_ids, forgotten_at=None))
    ids = [exchange.pk for exchange in exchanges]
    delete_statements(ids)
    unsupported = drop_sources(ids)
    removed = {
        "words": _count_by_exchange(LexicalEntry.objects.filter(exchange_id__in=ids)),
        "recalls": _count_by_exchange(RecallLogEntry.objects.filter(exchange_id__in=ids)),
        "records": _count_by_exchange(Record.objects.filter(exchange_id__in=ids)),
        "statements": {source: len(statements) for source, statements in unsupported.items()},
    }
    for exchange in exchanges:
        exchange.forgotten_at, exchange.forgotten_by_id, exchange.forgotten_by_operation = now, by, operation
        # The metadata of the exchange is deleted. From now on the field stores the counts for the receipt.
        exchange.metadata = {key: counts[exchange.pk] for key, counts in removed.items() if exchange.pk in counts}
    if has_events:
        _mark_passages(exchanges)
    fields = ["forgotten_at", "forgotten_by", "forgotten_by_operation", "metadata", "content_hash"]
    Exchange.objects.bulk_update(exchanges, fields)
    delete_entries(ids)
    MetadataValue.objects.filter(exchange_id__in=ids).delete()
    Record.objects.filter(exchange_id__in=ids).delete()
    Feedback.objects.filter(exchange_id__in=ids).delete()
    delete_supersessions(ids)
    RecallLogEntry.objects.filter(exchange_id__in=ids).update(reason="", later=None)
    RecallLogEntry.objects.filter(later_id__in=ids).update(later=None)
    busy_until = _embedding_lease_ends(ids, now)
    requeue_changed(Exchange.objects.filter(previous_id__in=ids).values_list("pk", flat=True))
    ErasureJob.objects.bulk_create(
        [ErasureJob(exchange_id=id, due_at=busy_until.get(id, now)) for id in ids], ignore_conflicts=True
    )
    if has_events:
        records = removed["records"]
        record_events(Event.Kind.EXCHANGE_FORGOTTEN, [e for e in exchanges if e.pk not in records])
        record_events(Event.Kind.RECORD_FORGOTTEN, [e for e in exchanges if e.pk in records])
    return ids, [statement for statements in unsupported.values() for statement in statements]


def _mark_passages(exchanges: Sequence[Exchange]) -> None:
    """Let chunks that are forgotten separately be recognised in the versions of their documents that are read later.

    The heading over them is deleted.
    """
    chunks = Chunk.objects.filter(exchange__in=[exchange.pk for exchange in exchanges])
    documents = dict(chunks.values_list("exchange_id", "version__document_id"))
    if documents:
        chunks.update(location="")
    for exchange in exchanges:
        if exchange.pk in documents:
            # The erasure needs the hash of the text for its cached embeddings.
            exchange.metadata[TEXT_HASH] = exchange.content_hash
            exchange.content_hash = passage_hash(documents[exchange.pk], exchange.content_hash)


def _flag_collections_for_purge(exchange_ids: Sequence[uuid.UUID]) -> None:
    """Mark for purging the collections of the spaces of these exchanges and of those that follow them, and of their vectors.

    All in one call, since the rows of collections stay locked until the transaction ends and are locked in one order.
    """
    space_ids, keys = set[uuid.UUID](), set[int]()
    for batch in batched(exchange_ids, _BATCH_SIZE):
        exchanges, followers = Exchange.objects.filter(pk__in=batch), Exchange.objects.filter(previous_id__in=batch)
        space_ids.update(exchanges.union(followers).values_list("space_id", flat=True))
        keys.update(Collection.objects.filter(embeddings__exchange_id__in=batch).values_list("pk", flat=True))
    for space in Space.objects.filter(pk__in=space_ids).order_by("pk"):
        placement.get_collection(space, generations.active_generation())  # the flag needs a row, even without vectors
    keys.update(Collection.objects.filter(placements__space__in=space_ids).values_list("pk", flat=True))
    generations.mark_purge_needed(Collection.objects.filter(pk__in=keys))


def _count_by_exchange(rows: QuerySet[Any]) -> dict[uuid.UUID, int]:
    return dict(rows.values_list("exchange_id").annotate(n=Count("pk")).order_by())


def _embedding_lease_ends(ids: Sequence[uuid.UUID], now: datetime) -> dict[uuid.UUID, datetime]:
    """Return for each exchange the end of the last lease on a following one, which embeds its text as context."""
    leased = EmbeddingJob.objects.filter(exchange__previous_id__in=ids, locked_until__gt=now)
    return dict(leased.values_list("exchange__previous_id").annotate(end=Max("locked_until")).order_by())

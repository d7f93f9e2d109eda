"""Receipts of forgetting: what was removed, and how far the erasure is."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum

from memory.index import generations
from memory.models import EmbeddingJob, ErasureJob, Exchange, Job, Placement
from memory.utils.batching import batched

_BATCH_SIZE = 100
# Keys of the counts in a tombstone's metadata.
_RECEIPT_KEYS = ("vectors", "words", "cached", "recalls", "records", "statements")


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Numbers of removed items by kind, and of exchanges whose erasure is not complete.

    `vectors` and `cached` are counted after verification; until then the exchange counts as `under_way`. `failed` is
    the part of `under_way` whose erasure failed permanently; an administrator can retry it. `in_files` counts exchanges
    of which collection or database files may still contain bytes.
    """

    exchanges: int
    vectors: int
    words: int
    cached: int
    recalls: int
    records: int
    statements: int
    under_way: int
    failed: int
    in_files: int


def count_vectors(exchange_ids: Iterable[uuid.UUID]) -> int:
    """Return the number of vectors of these exchanges in the active index generation."""
    done = EmbeddingJob.objects.filter(
        exchange_id__in=list(exchange_ids), state=Job.State.DONE, generation=generations.active_generation()
    )
    return done.aggregate(n=Sum("parts"))["n"] or 0


def next_erasure_attempt(exchange_ids: Iterable[uuid.UUID]) -> datetime | None:
    """Return when the erasure of one of these exchanges that could not be erased yet is tried again; None if none is."""
    waiting = ErasureJob.objects.filter(exchange_id__in=list(exchange_ids), state=Job.State.PENDING).exclude(error="")
    return waiting.order_by("due_at").values_list("due_at", flat=True).first()


def receipt_for(exchange_ids: Iterable[uuid.UUID]) -> ErasureReceipt:
    """Return the receipt for the forgotten ones of these exchanges."""
    totals: dict[str, int] = defaultdict(int)
    for batch in batched(exchange_ids, _BATCH_SIZE):
        rows = Exchange.objects.filter(pk__in=batch).exclude(forgotten_at=None)
        totals["failed"] += ErasureJob.objects.filter(exchange__in=rows, state=Job.State.FAILED).count()
        placements = Placement.objects.filter(space__in=rows.values("space")).exclude(
            collection__purge_needed_since=None
        )
        unpurged = set(placements.values_list("space", flat=True))
        for space_id, erased_at, metadata in rows.values_list("space_id", "erased_at", "metadata"):
            totals["exchanges"] += 1
            totals["under_way"] += erased_at is None
            totals["in_files"] += erased_at is None or space_id in unpurged
            for key, count in removed_counts(metadata).items():
                totals[key] += count
    return ErasureReceipt(**{name: totals[name] for name in ErasureReceipt.__slots__})


def removed_counts(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts in a tombstone's metadata without any remaining metadata of the exchange."""
    return {key: metadata[key] for key in _RECEIPT_KEYS if isinstance(metadata.get(key), int)}

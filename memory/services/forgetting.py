"""Forgetting: out of every read at once, then out of index, caches and text, verified, whatever crashes between."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from memory import jobs, nudge, signals, store
from memory.embeddings import cache
from memory.errors import StoreDisabled, StoreDown
from memory.lexical.writing import remove_words
from memory.models import Embedding, Erasure, Exchange, Job, MetadataValue, Recall
from memory.services.exchanges import embed_again
from memory.services.parts import ids_up_to

log = logging.getLogger(__name__)


@transaction.atomic
def forget(exchange_ids: Iterable[uuid.UUID], *, by: uuid.UUID) -> list[uuid.UUID]:
    """Make these exchanges tombstones, unreadable from the commit on; returns those that were not already.

    The caller has asked whether `by` may. Vectors, cached embeddings and texts follow in a worker.
    """
    now = timezone.now()
    fresh = Exchange.objects.select_for_update().filter(id__in=list(exchange_ids), forgotten_at=None)
    ids = list(fresh.values_list("id", flat=True))
    Exchange.objects.filter(id__in=ids).update(forgotten_at=now, forgotten_by=by)
    remove_words(ids)
    MetadataValue.objects.filter(exchange_id__in=ids).delete()
    Recall.objects.filter(exchange_id__in=ids).update(reason="")
    embed_again(Exchange.objects.filter(previous_id__in=ids).values_list("id", flat=True))
    Erasure.objects.bulk_create([Erasure(exchange_id=i, due_at=now) for i in ids], ignore_conflicts=True)
    if ids:
        cache.forget_queries()
        nudge.after_commit("erase_forgotten")
        transaction.on_commit(lambda: signals.forgotten.send(sender=None, exchange_ids=ids, by=by))
    return ids


def erase_forgotten(limit: int = 10_000) -> int:
    """Remove what is left of forgotten exchanges; returns how many are verified to be gone.

    Repeatable: each step removes what is there, and a row counts as erased only after the index was asked again.
    """
    erased = 0
    while erased < limit:
        due = Erasure.objects.select_related("exchange").order_by("due_at", "id")
        claimed = jobs.claim(due, 100)
        if not claimed:
            break
        erased += sum(_erase(job) for job in claimed)
    return erased


def _erase(job: Erasure) -> bool:
    exchange = job.exchange
    rows = list(Embedding.objects.filter(exchange=exchange).select_related("index"))
    now = timezone.now()
    if any(row.locked_until and row.locked_until > now for row in rows):
        # A worker is just embedding it and will see the tombstone when it is through.
        Erasure.objects.filter(pk=job.pk, attempt=job.attempt).update(
            locked_until=None, due_at=now + timedelta(seconds=2)
        )
        return False
    ids = ids_up_to(exchange.id, exchange.version)
    try:
        for collection in {row.index.collection for row in rows if row.index}:
            store.delete(collection, ids)
            if store.present(collection, ids):
                raise StoreDown("The vector store still holds what it was told to delete.")
    except (StoreDown, StoreDisabled) as error:
        log.warning("an exchange could not be erased yet: %s", error)
        jobs.put_off(job, str(error), counts=False)
        return False
    with transaction.atomic():
        digest = exchange.content_hash
        Embedding.objects.filter(exchange=exchange).delete()
        Exchange.objects.filter(pk=exchange.pk).update(
            user_message="",
            assistant_message="",
            metadata={},
            prior_exchange_ids=[],
            source_file="",
            content_hash="",
            erased_at=now,
        )
        cache.drop_unused([digest])
        Erasure.objects.filter(pk=job.pk).update(state=Job.State.DONE, locked_until=None, error="")
    return True

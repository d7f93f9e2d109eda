"""Erase vectors, cached embeddings and texts of forgotten exchanges, in verified steps that survive crashes."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory import jobs
from memory.embeddings import cache
from memory.errors import CatoError, VectorStoreDisabledError, VectorStoreRequestError, VectorStoreUnavailableError
from memory.exchanges.receipts import removed_counts
from memory.exchanges.supersessions import delete_supersessions
from memory.index import generations, store
from memory.index.vectors import all_vector_ids
from memory.models import (
    CachedEmbedding,
    Collection,
    EmbeddingJob,
    ErasureJob,
    Exchange,
    Feedback,
    Job,
    Placement,
    Record,
)
from memory.utils.formatting import format_number

log = logging.getLogger(__name__)

_BATCH_SIZE = 100
# The text fields of a tombstone.
_EMPTY_TEXT = {
    "user_message": "",
    "assistant_message": "",
    "prior_exchange_ids": [],
    "source_file": "",
}
# Key in the metadata of a passage that was forgotten separately, until it is erased.
TEXT_HASH = "text_hash"


def erase_forgotten(limit: int = 10_000) -> int:
    """Erase forgotten exchanges; return the number whose erasure is verified.

    The call can be repeated. A row counts as erased only after a second query of the index finds no vectors.
    """
    erased = 0
    while erased < limit:
        due = ErasureJob.objects.select_related("exchange").order_by("due_at", "id")
        claimed = jobs.claim(due, _BATCH_SIZE)
        if not claimed:
            break
        by_space: dict[uuid.UUID, list[ErasureJob]] = defaultdict(list)
        for job in claimed:
            by_space[job.exchange.space_id].append(job)
        for jobs_of_space in by_space.values():
            erased += _erase_in_space(jobs_of_space)
    return erased


def ensure_erased() -> None:
    """Raise CatoError if forgotten exchanges could not be erased after several attempts, or are not erased yet."""
    if failed := ErasureJob.objects.filter(state=Job.State.FAILED).count():
        sentence = ngettext(
            "%(count)s exchange could not be erased. Retry it in Admin, Failed jobs.",
            "%(count)s exchanges could not be erased. Retry them in Admin, Failed jobs.",
            failed,
        )
        raise CatoError(sentence % {"count": format_number(failed)})
    if pending := ErasureJob.objects.filter(state=Job.State.PENDING).count():
        raise CatoError(_("%(count)s exchanges are still being erased.") % {"count": format_number(pending)})


def passage_hash(document_id: uuid.UUID, text_hash: str) -> str:
    """Return the hash by which a passage that was forgotten separately is recognised in its document, and only there.

    It depends on the secret key, so that nobody can find out what the text was by hashing guesses.
    """
    return salted_hmac("forgotten passage", f"{document_id} {text_hash}", algorithm="sha256").hexdigest()


def _erase_in_space(claimed: Sequence[ErasureJob]) -> int:
    """Erase exchanges of one space; return the number erased. Those that are being embedded are retried after 2 s."""
    now = timezone.now()
    leased = set(
        EmbeddingJob.objects.filter(
            exchange_id__in=[job.exchange_id for job in claimed], locked_until__gt=now
        ).values_list("exchange_id", flat=True)
    )
    # A worker is embedding these exchanges and will see the tombstones when it finishes.
    for job in claimed:
        if job.exchange_id in leased:
            with suppress(jobs.LeaseLostError):
                jobs.Lease(job).release(due_at=now + timedelta(seconds=2))
    return _erase_ready([job for job in claimed if job.exchange_id not in leased])


def _erase_ready(ready: Sequence[ErasureJob]) -> int:
    """Erase exchanges that no worker is embedding; return the number erased.

    If the vector store refuses the batch, each half is tried separately, down to the single refused exchange.
    """
    try:
        vectors = _remove_vectors([job.exchange for job in ready])
    except VectorStoreRequestError as error:
        if len(ready) > 1:
            middle = len(ready) // 2
            return _erase_ready(ready[:middle]) + _erase_ready(ready[middle:])
        log.warning("an exchange could not be erased: %s", error)
        jobs.release_for_retry(ready[0], str(error), counts=True)
        return 0
    except (VectorStoreUnavailableError, VectorStoreDisabledError) as error:
        log.warning("%d exchanges could not be erased yet: %s", len(ready), error)
        for job in ready:
            jobs.release_for_retry(job, str(error), counts=False)
        return 0
    with transaction.atomic():
        for job in ready:
            _clear_row(job, vectors[job.exchange_id])
    return len(ready)


def _remove_vectors(exchanges: Sequence[Exchange]) -> dict[uuid.UUID, int]:
    """Delete the vectors of all versions and parts, and outdated vectors of the following exchanges.

    Return the number of vectors by exchange. Raises VectorStoreRequestError if a collection still has some afterwards.
    """
    ids = [exchange.pk for exchange in exchanges]
    rows = EmbeddingJob.objects.filter(exchange_id__in=ids, state=Job.State.DONE)
    recorded = dict(rows.values_list("exchange_id").annotate(n=Sum("parts")).order_by())
    found: dict[uuid.UUID, int] = defaultdict(int)
    # Followers in the same batch are excluded because all their versions are deleted anyway.
    followers = Exchange.objects.filter(previous_id__in=ids).exclude(pk__in=ids).only("pk", "version")
    vector_ids = [id for exchange in exchanges for id in all_vector_ids(exchange.pk, exchange.version)]
    vector_ids += [id for exchange in followers for id in all_vector_ids(exchange.pk, exchange.version - 1)]
    for collection in _collections_of(ids, {exchange.space_id for exchange in exchanges}):
        existing = store.existing_ids(collection, vector_ids)
        for vector_id in existing:
            found[uuid.UUID(vector_id.split(":", 1)[0])] += 1
        store.delete(collection, existing)
        if store.existing_ids(collection, existing):
            raise VectorStoreRequestError(_("The vector store still holds what it was told to delete."))
    # After a crash, vectors may be deleted but not yet counted. The numbers in the rows include them.
    return {id: max(found[id], recorded.get(id) or 0) for id in ids}


def _collections_of(ids: Sequence[uuid.UUID], space_ids: Iterable[uuid.UUID]) -> list[str]:
    """Return all collections that may hold vectors of these exchanges: all generations, and rebuilds in progress."""
    rows = EmbeddingJob.objects.filter(Q(exchange_id__in=ids) | Q(exchange__previous_id__in=ids))
    placed = Placement.objects.filter(space__in=list(space_ids))
    collections = Collection.objects.filter(Q(pk__in=rows.values("collection")) | Q(pk__in=placed.values("collection")))
    active = collections.values_list("name", flat=True)
    return sorted({generations.next_collection_name(name, step) for name in active for step in (-1, 0, 1)})


def erased_fields(message: str, metadata: Mapping[str, Any], content_hash: str) -> dict[str, Any]:
    """Return the fields of a tombstone without anything of the text: the counts for the receipt, and a passage's hash.

    A row without text keeps its hash: it was erased before, or in the backup from which it was restored.
    """
    keeps_hash = TEXT_HASH in metadata or not message
    return _EMPTY_TEXT | {"metadata": removed_counts(metadata), "content_hash": content_hash if keeps_hash else ""}


def _clear_row(job: ErasureJob, vectors: int) -> None:
    """Delete the text of the row, and keep the tombstone with the counts for the receipt."""
    exchange = job.exchange
    digest = exchange.metadata.get(TEXT_HASH, exchange.content_hash)
    duplicates = Exchange.objects.filter(content_hash=digest, forgotten_at=None)
    cached = 0 if duplicates.exists() else CachedEmbedding.objects.filter(content_hash=digest).count()
    EmbeddingJob.objects.filter(exchange=exchange).delete()
    Feedback.objects.filter(exchange=exchange).delete()
    delete_supersessions([exchange.pk])
    Record.objects.filter(exchange=exchange).delete()
    fields = erased_fields(exchange.user_message, exchange.metadata, exchange.content_hash)
    fields["metadata"] |= {"vectors": vectors, "cached": cached}
    Exchange.objects.filter(pk=exchange.pk).update(erased_at=timezone.now(), **fields)
    cache.delete_unreferenced([digest])
    ErasureJob.objects.filter(pk=job.pk).update(state=Job.State.DONE, locked_until=None, error="")

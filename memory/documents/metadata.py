"""Metadata of documents, which each chunk has together with its location."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from memory import jobs
from memory.errors import InvalidInputError
from memory.events import record_events
from memory.exchanges.lifecycle import Metadata
from memory.exchanges.metadata import Checked, save_metadata_values, validate_metadata
from memory.models import Chunk, Document, DocumentVersion, EmbeddingJob, Event, Exchange
from memory.utils.batching import iterate_by_pk

# Keys of a chunk's metadata that Cato sets.
DOCUMENT, PAGE, PLACE = "document", "page", "place"
OWN_KEYS = (DOCUMENT, PAGE, PLACE)
_BATCH_SIZE = 500


def validate_document_metadata(metadata: Metadata) -> Checked:
    """Return the validated metadata. Raises InvalidInputError, also for the keys that Cato sets."""
    checked = validate_metadata(metadata)
    reserved = [key for key in OWN_KEYS if key in checked]
    if reserved:
        raise InvalidInputError(
            _("The key %(key)s is written by Cato itself. Choose another name for it.") % {"key": reserved[0]}
        )
    return checked


def set_document_metadata(document: Document, metadata: Metadata) -> None:
    """Replace the metadata of a document and of all chunks of its versions. Raises InvalidInputError."""
    checked = validate_document_metadata(metadata)
    with transaction.atomic():
        locked = Document.objects.select_for_update().get(pk=document.pk)
        if locked.forgotten_at is not None or locked.metadata == checked:
            return
        locked.metadata = checked
        locked.save(update_fields=["metadata"])
        chunks = Exchange.objects.filter(
            forgotten_at=None,
            pk__in=Chunk.objects.filter(version__document=locked, version__removed_at=None).values("exchange"),
        )
        for batch in iterate_by_pk(chunks, _BATCH_SIZE):
            _set_chunk_metadata(batch, checked)
        record_events(Event.Kind.DOCUMENT_CHANGED, [locked])
        jobs.wake_worker_on_commit("index_pending")
    document.metadata = checked


def update_chunk_metadata(version: DocumentVersion) -> None:
    """Give the chunks of a version that are not forgotten its document's present metadata, and their places in this version.

    Metadata can be set while the file is read, and a chunk that is used again can have moved to another page.
    """
    chunks = version.chunks.filter(exchange__forgotten_at=None)
    rows = chunks.select_related("exchange").only("page", "location", "exchange__metadata")
    for batch in iterate_by_pk(rows, _BATCH_SIZE):
        outdated = []
        for row in batch:
            metadata = metadata_of_chunk(version, page=row.page, location=row.location)
            if row.exchange.metadata != metadata:
                row.exchange.metadata = metadata
                outdated.append(row.exchange)
        if outdated:
            _save_chunk_metadata(outdated)
            jobs.wake_worker_on_commit("index_pending")


def metadata_of_chunk(version: DocumentVersion, *, page: int | None, location: str) -> Checked:
    """Return the metadata of a chunk: that of the document, the document id, and the location of the chunk."""
    own: Checked = {DOCUMENT: str(version.document_id)}
    if page is not None:
        own[PAGE] = page
    if location:
        own[PLACE] = location
    return {**version.document.metadata, **own}


def _set_chunk_metadata(chunks: list[Exchange], metadata: Mapping[str, object]) -> None:
    for chunk in chunks:
        own = {key: chunk.metadata[key] for key in OWN_KEYS if key in chunk.metadata}
        chunk.metadata = {**metadata, **own}
    _save_chunk_metadata(chunks)


def _save_chunk_metadata(chunks: list[Exchange]) -> None:
    Exchange.objects.bulk_update(chunks, ["metadata"])
    save_metadata_values(chunks)
    # Chroma only adds fields to an existing vector, so changed metadata needs new vectors.
    ids = [chunk.pk for chunk in chunks]
    Exchange.objects.filter(pk__in=ids).update(version=F("version") + 1)
    jobs.requeue(EmbeddingJob.objects.filter(exchange_id__in=ids))

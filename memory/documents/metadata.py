"""Metadata of documents, which each chunk has together with its location."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from memory import jobs
from memory.errors import InvalidInputError
from memory.exchanges.lifecycle import Metadata
from memory.exchanges.metadata import Checked, save_metadata_values, validate_metadata
from memory.models import Chunk, Document, DocumentVersion, EmbeddingJob, Exchange
from memory.utils.batching import iterate_by_pk

# Keys of a chunk's metadata that Cato sets.
DOCUMENT, PAGE, PLACE = "document", "page", "place"
OWN_KEYS = (DOCUMENT, PAGE, PLACE)
_BATCH_SIZE = 500


def validate_document_metadata(metadata: Metadata) -> Checked:
    """Return the validated metadata. Raises InvalidInputError, also for the keys that Cato sets."""
    checked = validate_metadata(metadata)
    taken = [key for key in OWN_KEYS if key in checked]
    if taken:
        raise InvalidInputError(
            _("The key %(key)s is written by Cato itself. Choose another name for it.") % {"key": taken[0]}
        )
    return checked


def set_document_metadata(document: Document, metadata: Metadata) -> None:
    """Replace the metadata of a document and of all chunks of its versions. Raises InvalidInputError."""
    checked = validate_document_metadata(metadata)
    with transaction.atomic():
        held = Document.objects.select_for_update().get(pk=document.pk)
        if held.forgotten_at is not None or held.metadata == checked:
            return
        held.metadata = checked
        held.save(update_fields=["metadata"])
        pieces = Exchange.objects.filter(
            forgotten_at=None,
            pk__in=Chunk.objects.filter(version__document=held, version__removed_at=None).values("exchange"),
        )
        for some in iterate_by_pk(pieces, _BATCH_SIZE):
            _describe_together(some, checked)
        jobs.wake_worker_on_commit("index_pending")
    document.metadata = checked


def metadata_of_piece(version: DocumentVersion, *, page: int | None, place: str) -> Checked:
    """Return the metadata of a chunk: that of the document, the document id, and the location of the chunk."""
    own: Checked = {DOCUMENT: str(version.document_id)}
    if page is not None:
        own[PAGE] = page
    if place:
        own[PLACE] = place
    return {**version.document.metadata, **own}


def _describe_together(pieces: list[Exchange], described: Mapping[str, object]) -> None:
    for piece in pieces:
        own = {key: piece.metadata[key] for key in OWN_KEYS if key in piece.metadata}
        piece.metadata = {**described, **own}
    Exchange.objects.bulk_update(pieces, ["metadata"])
    save_metadata_values(pieces)
    # Chroma only adds fields to an existing vector, so changed metadata needs new vectors.
    ids = [piece.pk for piece in pieces]
    Exchange.objects.filter(pk__in=ids).update(version=F("version") + 1)
    jobs.requeue(EmbeddingJob.objects.filter(exchange_id__in=ids))

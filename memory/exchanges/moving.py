"""Move a thread's exchanges or a document to another space: rows at once, vectors soon after."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory import jobs, signals
from memory.errors import InvalidInputError
from memory.index import generations
from memory.models import Chunk, Collection, Document, DocumentVersion, EmbeddingJob, Exchange, LexicalEntry, Space
from memory.utils.batching import batched

_BATCH_SIZE = 500


@transaction.atomic
def move_thread(thread_id: uuid.UUID, *, to: Space, by: uuid.UUID) -> int:
    """Move all exchanges of the thread to the space `to`; return their number."""
    _announce(by, to, thread_id=thread_id)
    return _move(Exchange.objects.filter(thread_id=thread_id), to)


@transaction.atomic
def move_document(document: Document, *, to: Space, by: uuid.UUID) -> int:
    """Put the document with all its pieces into the space `to`; returns how many pieces moved.

    Raises InvalidInputError while a version of it is on its way, and where `to` has a document of this name.
    """
    locked = Document.objects.select_for_update().get(pk=document.pk)
    if locked.versions.filter(stage__in=DocumentVersion.UNDER_WAY).exists():
        sentence = _("%(name)s is still being read. Move it when it is remembered, or cancel that first.")
        raise InvalidInputError(sentence % {"name": locked.name})
    if Document.objects.filter(space=to, name=locked.name, forgotten_at=None).exclude(pk=locked.pk).exists():
        raise InvalidInputError(_("There is a document %(name)s in that space already.") % {"name": locked.name})
    # What is added from the same path again belongs to the space it is added to; here the name identifies it.
    Document.objects.filter(pk=locked.pk).update(space=to, source_path="")
    _announce(by, to, document_id=locked.pk)
    pieces = Chunk.objects.filter(version__document=locked).values("exchange_id")
    return _move(Exchange.objects.filter(id__in=pieces), to)


def _announce(by: uuid.UUID, to: Space, **what: uuid.UUID) -> None:
    transaction.on_commit(lambda: signals.moved.send(sender=None, by=by, to=to, **what))


def _move(exchanges: QuerySet[Exchange], to: Space) -> int:
    ids = list(exchanges.exclude(space=to).values_list("id", flat=True))
    for some in batched(ids, _BATCH_SIZE):
        # What is forgotten after the move would else stay in the files of where it was.
        generations.mark_purge_needed(Collection.objects.filter(embeddings__exchange_id__in=some))
        Exchange.objects.filter(id__in=some).update(space=to)
        LexicalEntry.objects.filter(exchange_id__in=some).update(space=to)
        jobs.requeue(EmbeddingJob.objects.filter(exchange_id__in=some))
    jobs.wake_worker_on_commit("index_pending")
    return len(ids)

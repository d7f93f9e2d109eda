"""Moving what a thread said, or a document, to another space: SQL at once, the vectors right after."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet

from memory import generations, jobs, nudge
from memory.batches import batched
from memory.errors import BadQuery
from memory.models import Chunk, Document, DocumentVersion, Embedding, Exchange, Index, Space, Words

_TOGETHER = 500


@transaction.atomic
def move_thread(thread_id: uuid.UUID, *, to: Space) -> int:
    """Put every exchange of the thread into the space `to`; returns how many moved."""
    return _move(Exchange.objects.filter(thread_id=thread_id), to)


@transaction.atomic
def move_document(document: Document, *, to: Space) -> int:
    """Put the document with all its pieces into the space `to`; returns how many pieces moved.

    Raises BadQuery while a version of it is on its way, and where `to` has a document of this name.
    """
    locked = Document.objects.select_for_update().get(pk=document.pk)
    if locked.versions.filter(stage__in=DocumentVersion.UNDER_WAY).exists():
        raise BadQuery(f"{locked.name} is still being read. Move it when it is remembered, or cancel that first.")
    if Document.objects.filter(space=to, name=locked.name, forgotten_at=None).exclude(pk=locked.pk).exists():
        raise BadQuery(f"There is a document {locked.name} in that space already.")
    Document.objects.filter(pk=locked.pk).update(space=to)
    pieces = Chunk.objects.filter(version__document=locked).values("exchange_id")
    return _move(Exchange.objects.filter(id__in=pieces), to)


def _move(exchanges: QuerySet[Exchange], to: Space) -> int:
    ids = list(exchanges.exclude(space=to).values_list("id", flat=True))
    for some in batched(ids, _TOGETHER):
        # What is forgotten after the move would else stay in the files of where it was.
        generations.soil(Index.objects.filter(embeddings__exchange_id__in=some))
        Exchange.objects.filter(id__in=some).update(space=to)
        Words.objects.filter(exchange_id__in=some).update(space=to)
        jobs.begin_again(Embedding.objects.filter(exchange_id__in=some))
    nudge.after_commit("index_pending")
    return len(ids)

"""Move a thread's exchanges or a document to another space: rows at once, vectors later by a worker."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory import jobs, signals
from memory.documents.uploads import numbered_names
from memory.errors import InvalidInputError
from memory.events import record_events
from memory.exchanges.forgetting import forget
from memory.knowledge.sources import drop_sources, lock_with_statements
from memory.models import Chunk, Document, DocumentVersion, EmbeddingJob, Event, Exchange, LexicalEntry, Space
from memory.spaces.access import ensure_open
from memory.utils.batching import batched

_BATCH_SIZE = 500


@transaction.atomic
def move_thread(thread_id: uuid.UUID, *, to: Space, by: uuid.UUID) -> int:
    """Move all exchanges of the thread to the space `to`; return their number. Raises InvalidInputError if it is archived."""
    ensure_open(to)
    _send_moved_on_commit(by, to, thread_id=thread_id)
    exchanges = Exchange.objects.filter(thread_id=thread_id)
    moved = list(exchanges.filter(forgotten_at=None).exclude(space=to).only("thread_id", "space_id"))
    record_events(Event.Kind.EXCHANGE_MOVED_OUT, moved)
    record_events(Event.Kind.EXCHANGE_MOVED_IN, moved, space_id=to.pk)
    return _move(exchanges, to, by=by)


def is_being_read(document: Document) -> bool:
    """Return True while a version of the document is being processed, so that it cannot be moved."""
    return document.versions.filter(stage__in=DocumentVersion.UNDER_WAY).exists()


@transaction.atomic
def move_document(document: Document, *, to: Space, by: uuid.UUID, is_separate: bool = False) -> int:
    """Move the document with all its chunks to the space `to`; return the number of chunks moved.

    `is_separate`: it gets a number after its name if `to` has a document of this name. Raises InvalidInputError while a
    version is being processed, and otherwise if the name is taken or `to` is archived.
    """
    ensure_open(to)
    locked = Document.objects.select_for_update().get(pk=document.pk)
    if is_being_read(locked):
        sentence = _("%(name)s is still being read. Move it when it is remembered, or cancel that first.")
        raise InvalidInputError(sentence % {"name": locked.name})
    name = locked.name
    others = Document.objects.filter(space=to, forgotten_at=None).exclude(pk=locked.pk)
    if is_separate:
        name = next(name for name in numbered_names(name, to) if not others.filter(name=name).exists())
    elif others.filter(name=name).exists():
        raise InvalidInputError(_("That space already has a document %(name)s.") % {"name": locked.name})
    record_events(Event.Kind.DOCUMENT_MOVED_OUT, [locked])
    record_events(Event.Kind.DOCUMENT_MOVED_IN, [locked], space_id=to.pk)
    # Without its path, the next file from that path is a new document; this one is identified by its name.
    Document.objects.filter(pk=locked.pk).update(space=to, name=name, source_path="")
    _send_moved_on_commit(by, to, document_id=locked.pk)
    chunks = Chunk.objects.filter(version__document=locked).values("exchange_id")
    return _move(Exchange.objects.filter(id__in=chunks), to, by=by)


def _send_moved_on_commit(by: uuid.UUID, to: Space, **what: uuid.UUID) -> None:
    transaction.on_commit(lambda: signals.moved.send(sender=None, by=by, to=to, **what))


def _move(exchanges: QuerySet[Exchange], to: Space, *, by: uuid.UUID) -> int:
    ids = list(exchanges.exclude(space=to).values_list("id", flat=True))
    lock_with_statements(ids)
    for batch in batched(ids, _BATCH_SIZE):
        Exchange.objects.filter(id__in=batch).update(space=to)
        LexicalEntry.objects.filter(exchange_id__in=batch).update(space=to)
        jobs.requeue(EmbeddingJob.objects.filter(exchange_id__in=batch))
        forget([id for statements in drop_sources(batch).values() for id in statements], by=by)
    jobs.wake_worker_on_commit("index_pending")
    return len(ids)

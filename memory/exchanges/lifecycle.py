"""Store, update, hide and show exchanges, with their terms and embedding jobs, in the caller's transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import jobs
from memory.errors import InvalidInputError, VectorStoreDisabledError
from memory.events import record_events
from memory.exchanges.forgetting import forget
from memory.exchanges.metadata import add_metadata_values, save_metadata_values, validate_metadata
from memory.exchanges.requeueing import requeue_changed
from memory.index.generations import writable_generations
from memory.index.parts import embedding_hash
from memory.knowledge.sources import (
    follow_sources,
    lock_with_statements,
    sources_changed,
    statements_supported_by,
)
from memory.lexical.indexing import index_terms
from memory.models import EmbeddingJob, Event, Exchange, Space
from memory.text import clean_text

Scalar = str | int | float | bool
Metadata = Mapping[str, Scalar | Sequence[Scalar]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExchange:
    """Fields of an exchange to store. A note has only a `user_message`.

    `id` is chosen by imports, so that they are not repeated; None: that of the turn, which copies of the turn know before it
    has an exchange, and without a turn a new one. `owner` is the row of `owner_id`, if it is in memory. `is_first` says that
    the turn has no exchange yet, so that none is looked up.
    """

    id: uuid.UUID | None = None
    space: Space
    owner_id: uuid.UUID
    owner: Model | None = None
    user_message: str
    source: str
    assistant_message: str = ""
    timestamp: datetime | None = None
    thread_id: uuid.UUID | None = None
    session_id: uuid.UUID | None = None
    turn_id: uuid.UUID | None = None
    is_first: bool = False
    thread_continuation_seq: int = 0
    prior_exchange_ids: Sequence[uuid.UUID] = ()
    manual_entry: bool = False
    source_file: str = ""
    chunk_index: int | None = None
    total_chunks: int | None = None
    metadata: Metadata = field(default_factory=dict)


def remember(exchange: NewExchange) -> Exchange:
    """Store one exchange; a worker embeds it after the commit.

    If the turn already has an exchange, its text is updated. Raises VectorStoreDisabledError, and InvalidInputError for
    an empty text.
    """
    return remember_many([exchange])[0]


def remember_many(items: Sequence[NewExchange], *, event: Event.Kind = Event.Kind.EXCHANGE_STORED) -> list[Exchange]:
    """Store several exchanges in one transaction; return them in the same order.

    They are embedded together, in as few requests as the provider allows. `event`: the kind of the events of
    new exchanges. Raises VectorStoreDisabledError and InvalidInputError, before anything is written.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_("Nothing is remembered: the vector store is disabled (vector_store.enabled)."))
    built = [_build_exchange(item) for item in items]
    # Without a savepoint: what can be refused has been refused.
    with transaction.atomic(savepoint=False):
        return _store(items, built, event)


def _store(items: Sequence[NewExchange], built: Sequence[Exchange], event: Event.Kind) -> list[Exchange]:
    turns = [item.turn_id for item in items if item.turn_id and not item.is_first]
    known = {row.turn_id: row for row in Exchange.objects.filter(turn_id__in=turns)} if turns else {}
    if len(known) > 1:
        lock_with_statements(row.pk for row in known.values())
    stored: list[Exchange] = []
    latest: dict[uuid.UUID, Exchange | None] = dict.fromkeys(_new_sessions(items))
    for item, exchange in zip(items, built, strict=True):
        if item.turn_id in known:
            stored.append(
                update_exchange(
                    known[item.turn_id], user_message=item.user_message, assistant_message=item.assistant_message
                )
            )
            continue
        exchange.previous = _previous_exchange(exchange, latest, stored[-1] if stored else None)
        if exchange.session_id:
            latest[exchange.session_id] = exchange
        exchange.content_hash = embedding_hash(exchange)
        stored.append(exchange)
    added = [exchange for exchange in stored if exchange._state.adding]
    Exchange.objects.bulk_create(added)
    index_terms(added)
    add_metadata_values(added)
    now, generations = timezone.now(), writable_generations()
    EmbeddingJob.objects.bulk_create(
        [EmbeddingJob(exchange=e, generation=g, due_at=now) for e in added for g in generations]
    )
    record_events(event, added)
    jobs.wake_worker_on_commit("index_pending")
    return stored


@transaction.atomic
def update_exchange(
    exchange: Exchange, *, user_message: str, assistant_message: str, metadata: Metadata | None = None
) -> Exchange:
    """Replace the text, for example after a resumed answer, and optionally the metadata; skip a forgotten exchange."""
    lock_with_statements([exchange.pk])
    exchange = Exchange.objects.select_related("owner", "previous", "record").get(pk=exchange.pk)
    if exchange.forgotten_at:
        return exchange
    exchange.user_message, exchange.assistant_message = clean_text(user_message), clean_text(assistant_message)
    _require_text(exchange.user_message)
    new_metadata = exchange.metadata if metadata is None else validate_metadata(metadata)
    # Chroma only adds fields to an existing vector, so changed metadata needs new vectors.
    has_new_metadata, exchange.metadata = new_metadata != exchange.metadata, new_metadata
    exchange.size = len(exchange.user_message) + len(exchange.assistant_message)
    exchange.save(update_fields=["user_message", "assistant_message", "metadata", "size"])
    index_terms([exchange])
    save_metadata_values([exchange])
    requeue_changed([exchange.pk], force=has_new_metadata)
    requeue_changed(exchange.following.values_list("pk", flat=True))
    forget(sources_changed(exchange), by=exchange.owner_id)
    is_record = hasattr(exchange, "record")
    record_events(Event.Kind.RECORD_CHANGED if is_record else Event.Kind.EXCHANGE_CHANGED, [exchange])
    exchange.refresh_from_db()
    return exchange


@transaction.atomic
def set_metadata(exchange: Exchange, metadata: Metadata) -> Exchange:
    """Replace the metadata. Raises InvalidInputError for invalid metadata and for a chunk, which has its document's."""
    lock_with_statements([exchange.pk])
    locked = Exchange.objects.get(pk=exchange.pk)
    if locked.chunks.exists():
        raise InvalidInputError(_("This is a passage of a document. Change the metadata of the document instead."))
    return update_exchange(
        locked, user_message=locked.user_message, assistant_message=locked.assistant_message, metadata=metadata
    )


def _build_exchange(item: NewExchange) -> Exchange:
    user_message, assistant_message = clean_text(item.user_message), clean_text(item.assistant_message)
    _require_text(user_message)
    return Exchange(
        id=item.id or item.turn_id or uuid.uuid4(),
        space=item.space,
        user_message=user_message,
        assistant_message=assistant_message,
        source=item.source,
        timestamp=item.timestamp or timezone.now(),
        thread_id=item.thread_id,
        session_id=item.session_id,
        turn_id=item.turn_id,
        thread_continuation_seq=item.thread_continuation_seq,
        prior_exchange_ids=[str(i) for i in item.prior_exchange_ids],
        manual_entry=item.manual_entry,
        source_file=item.source_file,
        chunk_index=item.chunk_index,
        total_chunks=item.total_chunks,
        metadata=validate_metadata(item.metadata),
        size=len(user_message) + len(assistant_message),
        is_extracted=item.source == Exchange.Source.KNOWLEDGE,
        **({"owner": item.owner} if item.owner else {"owner_id": item.owner_id}),
    )


def _previous_exchange(
    exchange: Exchange, latest: Mapping[uuid.UUID, Exchange | None], last_stored: Exchange | None
) -> Exchange | None:
    """Return the previous exchange of the session, or the previous chunk of the same text."""
    if exchange.session_id is None:
        return last_stored if exchange.chunk_index else None
    if exchange.session_id in latest:
        return latest[exchange.session_id]
    earlier = Exchange.objects.findable().filter(session_id=exchange.session_id, timestamp__lte=exchange.timestamp)
    return earlier.order_by("-timestamp", "-created_at").first()


def _new_sessions(items: Sequence[NewExchange]) -> set[uuid.UUID]:
    """Return the sessions without exchanges, with one query for all; empty for fewer than two sessions."""
    sessions = {item.session_id for item in items if item.session_id}
    if len(sessions) < 2:
        return set()
    known = Exchange.objects.findable().filter(session_id__in=sessions).values_list("session_id", flat=True)
    return sessions - set(known.distinct())


def _require_text(user_message: str) -> None:
    if not user_message.strip():
        raise InvalidInputError(_("There is nothing to remember: the text is empty."))


def deactivate(exchange_ids: Iterable[uuid.UUID | None], *, are_citable: bool = False) -> int:
    """Hide these exchanges from retrieval; return the number changed. They stay stored and embedded.

    `are_citable`: answers for which they were recalled still show them.
    """
    return _set_inactive(exchange_ids, is_inactive=True, is_citable=are_citable)


def activate(exchange_ids: Iterable[uuid.UUID | None]) -> int:
    """Include these exchanges in retrieval again; return the number changed."""
    return _set_inactive(exchange_ids, is_inactive=False, is_citable=False)


@transaction.atomic
def _set_inactive(exchange_ids: Iterable[uuid.UUID | None], *, is_inactive: bool, is_citable: bool) -> int:
    ids = [id for id in exchange_ids if id is not None]
    lock_with_statements(ids)
    changed = Exchange.objects.filter(id__in=ids, forgotten_at=None).exclude(
        is_inactive=is_inactive, is_citable=is_citable
    )
    rows = list(changed.only("thread_id", "space_id", "is_inactive"))
    record_events(
        Event.Kind.EXCHANGE_HIDDEN if is_inactive else Event.Kind.EXCHANGE_SHOWN,
        [row for row in rows if row.is_inactive != is_inactive],
    )
    count = changed.update(is_inactive=is_inactive, is_citable=is_citable)
    follow_sources(statements_supported_by(ids))
    return count

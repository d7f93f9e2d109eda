"""Remembering: an exchange goes into SQL with the work of embedding it, in the caller's transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from memory import jobs, nudge
from memory.errors import BadQuery, StoreDisabled
from memory.generations import live
from memory.models import Embedding, Exchange, Space
from memory.text import clean_text, content_hash

Scalar = str | int | float | bool
Metadata = Mapping[str, Scalar | Sequence[Scalar]]


@transaction.atomic
def remember(
    *,
    space: Space,
    owner_id: uuid.UUID,
    user_message: str,
    assistant_message: str = "",
    source: str,
    timestamp: datetime | None = None,
    thread_id: uuid.UUID | None = None,
    session_id: uuid.UUID | None = None,
    turn_id: uuid.UUID | None = None,
    thread_continuation_seq: int = 0,
    prior_exchange_ids: Sequence[uuid.UUID] = (),
    manual_entry: bool = False,
    source_file: str = "",
    metadata: Metadata | None = None,
) -> Exchange:
    """Keep one exchange, to be embedded after the commit; a turn that has one already gets its text renewed.

    A note has its text in `user_message` alone. Raises StoreDisabled, and BadQuery for an empty text.
    """
    if not settings.CATO.vector_store.enabled:
        raise StoreDisabled("Nothing is remembered: the vector store is disabled (vector_store.enabled).")
    user_message, assistant_message = clean_text(user_message), clean_text(assistant_message)
    if not user_message.strip():
        raise BadQuery("There is nothing to remember: the text is empty.")
    if turn_id is not None:
        known = Exchange.objects.filter(turn_id=turn_id).first()
        if known is not None:
            return revise(known, user_message=user_message, assistant_message=assistant_message)
    exchange = Exchange.objects.create(
        space=space,
        owner_id=owner_id,
        user_message=user_message,
        assistant_message=assistant_message,
        source=source,
        timestamp=timestamp or timezone.now(),
        thread_id=thread_id,
        session_id=session_id,
        turn_id=turn_id,
        thread_continuation_seq=thread_continuation_seq,
        prior_exchange_ids=[str(i) for i in prior_exchange_ids],
        manual_entry=manual_entry,
        source_file=source_file,
        metadata=dict(metadata or {}),
        size=len(user_message) + len(assistant_message),
        content_hash=content_hash(user_message, assistant_message),
    )
    now = timezone.now()
    Embedding.objects.bulk_create([Embedding(exchange=exchange, generation=g, due_at=now) for g in live()])
    nudge.after_commit("index_pending")
    return exchange


@transaction.atomic
def revise(exchange: Exchange, *, user_message: str, assistant_message: str) -> Exchange:
    """Give an exchange its later text (an answer that was resumed); a forgotten one stays forgotten."""
    digest = content_hash(user_message, assistant_message)
    changed = Exchange.objects.filter(pk=exchange.pk, forgotten_at=None).exclude(content_hash=digest)
    if changed.update(
        user_message=user_message,
        assistant_message=assistant_message,
        size=len(user_message) + len(assistant_message),
        content_hash=digest,
        version=F("version") + 1,
    ):
        jobs.begin_again(Embedding.objects.filter(exchange=exchange))
        nudge.after_commit("index_pending")
    exchange.refresh_from_db()
    return exchange

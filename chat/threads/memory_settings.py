"""Switch a thread's memory on or off, store missed turns, and forget exchanges of threads."""

from __future__ import annotations

import uuid
from contextlib import suppress

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat import access
from chat.answers.persistence import store_exchange
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from memory import api as memory
from memory.api import (
    STORE_DISABLED,
    Exchange,
    NotFoundError,
    ProgressCallback,
    VectorStoreDisabledError,
    batched,
    no_progress,
)

_BATCH_SIZE = 200


def exchanges_of(thread: Thread) -> QuerySet[Exchange]:
    """Return the stored exchanges of this thread."""
    return Exchange.objects.filter(thread_id=thread.id, forgotten_at=None)


@transaction.atomic
def set_memory_enabled(thread: Thread, is_remembered: bool) -> None:
    """Store this thread's future exchanges in memory, or stop doing so; stored exchanges are not changed."""
    Thread.objects.filter(id=thread.id).update(is_remembered=is_remembered)
    if not is_remembered:
        thread.turns.filter(is_missing_in_memory=True).update(is_missing_in_memory=False)
    notify_thread_changed(thread.id)


def store_missing_turns(*, progress: ProgressCallback = no_progress) -> int:
    """Store the turns that were answered while the vector store was disabled; return their number.

    Skips threads not saved to memory, deleted threads and inactive branches. Can be interrupted and called again.
    Raises VectorStoreDisabledError.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_(STORE_DISABLED))
    missing = Turn.objects.active_branch().filter(
        is_missing_in_memory=True, thread__is_remembered=True, thread__deleted_at=None
    )
    stored = 0
    while turns := list(missing.select_related("thread__space", "session").order_by("created_at")[:_BATCH_SIZE]):
        for turn in turns:
            store_exchange(turn)
        stored += len(turns)
        progress("stored", len(turns))
    return stored


@transaction.atomic
def forget_thread_exchanges(thread: Thread, *, by: uuid.UUID) -> int:
    """Forget all exchanges of this thread and return their number; the thread keeps its text."""
    ids = list(exchanges_of(thread).values_list("id", flat=True))
    for batch in batched(ids, _BATCH_SIZE):
        memory.forget(batch, by=by)
    return len(ids)


def forget_exchange(person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool) -> Exchange:
    """Forget one exchange. Raises NotFoundError, also if this person may not forget it."""
    exchange = access.exchange_to_forget(person_id, exchange_id, is_administrator=is_administrator)
    memory.forget([exchange.id], by=person_id)
    return exchange


@transaction.atomic
def forget_statement(
    person_id: uuid.UUID, statement_id: uuid.UUID, *, is_administrator: bool, with_own_sources: bool
) -> None:
    """Forget a statement, and those of its sources that are this person's, also for an administrator.

    Raises NotFoundError, also if this person may not forget it.
    """
    rows = Exchange.objects.filter(id__in=memory.source_ids(statement_id), owner_id=person_id)
    sources = list(rows.values_list("id", flat=True)) if with_own_sources else []
    forget_exchange(person_id, statement_id, is_administrator=is_administrator)
    for source in sources:
        with suppress(NotFoundError):
            forget_exchange(person_id, source, is_administrator=False)

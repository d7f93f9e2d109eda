"""Whether a thread is remembered, and forgetting what is."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chat.answers.persistence import store_exchange
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from memory import api as memory
from memory.errors import DISABLED, VectorStoreDisabledError
from memory.index.reconcile import ProgressCallback, no_progress
from memory.models import Exchange
from memory.utils.batching import batched

_TOGETHER = 200


def exchanges_of(thread: Thread) -> QuerySet[Exchange]:
    """What memory keeps of this thread."""
    return Exchange.objects.filter(thread_id=thread.id, forgotten_at=None)


@transaction.atomic
def set_memory_enabled(thread: Thread, is_remembered: bool) -> None:
    """From now on remember this thread's exchanges, or do not; what was remembered before stays as it is."""
    Thread.objects.filter(id=thread.id).update(is_remembered=is_remembered)
    if not is_remembered:
        thread.turns.filter(is_missing_in_memory=True).update(is_missing_in_memory=False)
    notify_thread_changed(thread.id)


def store_missing_turns(*, progress: ProgressCallback = no_progress) -> int:
    """Store in memory what was answered while the vector store was disabled; returns how many turns that were.

    Threads that are not saved to memory, deleted ones and versions that are not shown are left out. May be interrupted
    and called again. Raises VectorStoreDisabledError.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_(DISABLED))
    missing = Turn.objects.standing().filter(
        is_missing_in_memory=True, thread__is_remembered=True, thread__deleted_at=None
    )
    stored = 0
    while turns := list(missing.select_related("thread__space", "session").order_by("created_at")[:_TOGETHER]):
        for turn in turns:
            store_exchange(turn)
        stored += len(turns)
        progress("stored", len(turns))
    return stored


@transaction.atomic
def forget_thread_exchanges(thread: Thread, *, by: uuid.UUID) -> int:
    """Forget all that is remembered of this thread, whose words stay; returns how many exchanges that were."""
    ids = list(exchanges_of(thread).values_list("id", flat=True))
    for some in batched(ids, _TOGETHER):
        memory.forget(some, by=by)
    return len(ids)

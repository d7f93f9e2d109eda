"""Whether a thread is remembered, and forgetting what is."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet

from chat.models import Thread
from chat.news import thread_changed
from memory import services as memory
from memory.batches import batched
from memory.models import Exchange

_TOGETHER = 200


def remembered_of(thread: Thread) -> QuerySet[Exchange]:
    """What memory keeps of this thread."""
    return Exchange.objects.filter(thread_id=thread.id, forgotten_at=None)


@transaction.atomic
def set_remembered(thread: Thread, is_remembered: bool) -> None:
    """From now on remember this thread's exchanges, or do not; what was remembered before stays as it is."""
    Thread.objects.filter(id=thread.id).update(is_remembered=is_remembered)
    thread_changed(thread.id)


@transaction.atomic
def forget_remembered(thread: Thread, *, by: uuid.UUID) -> int:
    """Forget all that is remembered of this thread, whose words stay; returns how many exchanges that were."""
    ids = list(remembered_of(thread).values_list("id", flat=True))
    for some in batched(ids, _TOGETHER):
        memory.forget(some, by=by)
    return len(ids)

"""Moving a thread to another space: what is in it and what is remembered of it goes along at once."""

from __future__ import annotations

import uuid

from django.db import transaction

from chat.models import ReadMark, Thread
from chat.realtime.notifications import active_readers, notify_after_commit, notify_thread_changed
from chat.threads.locks import ensure_idle, lock_thread
from memory import api as memory
from memory.models import Space


@transaction.atomic
def move(thread: Thread, *, to: Space, by: uuid.UUID) -> int:
    """Put the thread and its exchanges into the space `to`; returns how many exchanges moved.

    Raises ThreadBusyError while an answer is written: it was begun with what the readers until now may know.
    """
    locked = lock_thread(thread.id)
    ensure_idle(locked)
    notify_after_commit(active_readers(locked.space))
    Thread.objects.filter(id=thread.id).update(space=to)
    moved = memory.move_thread(thread.id, to=to, by=by)
    ReadMark.objects.filter(thread=thread).exclude(person_id__in=active_readers(to)).delete()
    notify_thread_changed(thread.id)
    return moved

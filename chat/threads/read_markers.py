"""What somebody has seen of a thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.utils import timezone

from chat.models import ReadMark, Thread
from chat.realtime.notifications import notify_after_commit


def mark_read(thread: Thread, person_id: uuid.UUID) -> None:
    """All of the thread that is complete by now has been seen; nothing is written where that was so already."""
    if unread_thread_ids(person_id, [thread]):
        ensure_marker(thread, person_id)
        notify_after_commit([person_id])


def ensure_marker(thread: Thread, person_id: uuid.UUID) -> None:
    """From here on, what is complete in this thread later is new to this person."""
    ReadMark.objects.update_or_create(person_id=person_id, thread=thread, defaults={"seen_at": timezone.now()})


def unread_thread_ids(person_id: uuid.UUID, threads: Iterable[Thread]) -> set[uuid.UUID]:
    """Those of `threads` in which something is complete that this person has not seen.

    One's own thread counts from the first time one said something there or opened it: what was imported is not news.
    Another's counts from its beginning, if that was after one joined.
    """
    given = [thread for thread in threads if thread.changed_at is not None]
    marks = ReadMark.objects.filter(person_id=person_id, thread__in=[t.id for t in given])
    seen = dict(marks.values_list("thread_id", "seen_at"))
    if all(t.id in seen or t.owner_id == person_id for t in given):
        joined_at = None
    else:
        joined_at = get_user_model().objects.values_list("joined_at", flat=True).get(id=person_id)

    def is_unread(thread: Thread) -> bool:
        if thread.id in seen:
            return thread.changed_at is not None and seen[thread.id] < thread.changed_at
        return thread.owner_id != person_id and joined_at is not None and thread.created_at > joined_at

    return {thread.id for thread in given if is_unread(thread)}

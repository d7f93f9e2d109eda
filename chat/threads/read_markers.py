"""Read markers: which threads are unread for a person."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.utils import timezone

from chat.models import ReadMarker, Thread
from chat.realtime.notifications import notify_after_commit


def mark_read(thread: Thread, person_id: uuid.UUID) -> None:
    """Mark everything complete in the thread as read; write nothing if it is read already."""
    if unread_thread_ids(person_id, [thread]):
        ensure_marker(thread, person_id)
        notify_after_commit([person_id])


def ensure_marker(thread: Thread, person_id: uuid.UUID) -> None:
    """Set the read marker to now; answers that complete later are unread."""
    ReadMarker.objects.update_or_create(person_id=person_id, thread=thread, defaults={"last_read_at": timezone.now()})


def unread_thread_ids(person_id: uuid.UUID, threads: Iterable[Thread]) -> set[uuid.UUID]:
    """Return those of `threads` in which something was completed since this person read them.

    Without a marker, a thread of another person is unread if it was created after this person joined. An own thread is
    not: it has a marker once its owner posts or opens it, so that imported threads are not unread.
    """
    changed = [thread for thread in threads if thread.changed_at is not None]
    marks = ReadMarker.objects.filter(person_id=person_id, thread__in=[t.id for t in changed])
    read_at = dict(marks.values_list("thread_id", "last_read_at"))
    if all(t.id in read_at or t.owner_id == person_id for t in changed):
        joined_at = None
    else:
        joined_at = get_user_model().objects.values_list("joined_at", flat=True).get(id=person_id)

    def is_unread(thread: Thread) -> bool:
        if thread.id in read_at:
            return thread.changed_at is not None and read_at[thread.id] < thread.changed_at
        return thread.owner_id != person_id and joined_at is not None and thread.created_at > joined_at

    return {thread.id for thread in changed if is_unread(thread)}

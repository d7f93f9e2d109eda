"""Read markers: which threads are unread for a person."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from chat.models import ReadMarker, Thread
from chat.realtime.messages import ListChange
from chat.realtime.notifications import notify_after_commit


def mark_read(thread: Thread, person_id: uuid.UUID) -> None:
    """Mark everything complete in the thread as read; write nothing if it is read already."""
    if unread_thread_ids(person_id, [thread]):
        ensure_marker(thread, person_id)
        notify_after_commit([person_id], ListChange(thread.id))


def ensure_marker(thread: Thread, person_id: uuid.UUID) -> None:
    """Set the read marker to now; answers that complete later are unread."""
    marker = ReadMarker(person_id=person_id, thread=thread, last_read_at=timezone.now())
    ReadMarker.objects.bulk_create(
        [marker], update_conflicts=True, unique_fields=["person", "thread"], update_fields=["last_read_at"]
    )


def with_read_times(threads: QuerySet[Thread], person_id: uuid.UUID) -> QuerySet[Any]:
    """Add what `is_unread` needs to the threads: `read_at` and `joined_at` of this person."""
    markers = ReadMarker.objects.filter(person_id=person_id, thread=OuterRef("pk"))
    people = get_user_model().objects.filter(id=person_id)
    return threads.annotate(
        read_at=Subquery(markers.values("last_read_at")), joined_at=Subquery(people.values("joined_at"))
    )


def is_unread(thread: Any, person_id: uuid.UUID) -> bool:
    """Return whether something was completed in the thread (with its read times) since this person read it.

    Without a marker, a thread of another person is unread if it was created after this person joined. An own thread is
    not: it has a marker once its owner posts or opens it, so that imported threads are not unread.
    """
    if thread.changed_at is None:
        return False
    if thread.read_at is not None:
        return bool(thread.read_at < thread.changed_at)
    return bool(thread.owner_id != person_id and thread.created_at > thread.joined_at)


def unread_thread_ids(person_id: uuid.UUID, threads: Iterable[Thread]) -> set[uuid.UUID]:
    """Return those of `threads` that are unread for this person."""
    changed = [thread.id for thread in threads if thread.changed_at is not None]
    rows = with_read_times(Thread.objects.filter(id__in=changed), person_id) if changed else []
    return {thread.id for thread in rows if is_unread(thread, person_id)}

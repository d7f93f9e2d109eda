"""What readers mark in a thread for themselves: how far they have read, and whether they pinned, muted or archived it."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Case, F, FilteredRelation, Q, QuerySet, Subquery, When
from django.utils import timezone

from chat.models import ReaderMarks, Thread
from chat.realtime.messages import ListChange
from chat.realtime.notifications import notify_after_commit


def with_marks(threads: QuerySet[Thread], person_id: uuid.UUID) -> QuerySet[Any]:
    """Add this person's marks to the threads: `read_at`, `present_at`, `pinned_at`, `muted_at` and `archived_at`.

    They are None where the person has not marked the thread. `joined_at` is when the person's account was created.
    """
    people = get_user_model().objects.filter(id=person_id)
    return threads.annotate(
        marks=FilteredRelation("reader_marks", condition=Q(reader_marks__person=person_id)),
        read_at=F("marks__last_read_at"),
        present_at=F("marks__last_present_at"),
        # An archived thread is pinned again once it is listed.
        pinned_at=Case(When(marks__archived_at=None, then=F("marks__pinned_at"))),
        muted_at=F("marks__muted_at"),
        archived_at=F("marks__archived_at"),
        joined_at=Subquery(people.values("joined_at")),
    )


def has_news(thread: Any, person_id: uuid.UUID) -> bool:
    """Return whether something was completed in the thread (with this person's marks) since they read it.

    Without a marker, a thread of another person has news if it was created after this person joined. An own thread has
    none: it has a marker once its owner posts or opens it, so that imported threads are not unread.
    """
    if thread.changed_at is None:
        return False
    if thread.read_at is not None:
        return bool(thread.read_at < thread.changed_at)
    return bool(thread.owner_id != person_id and thread.created_at > thread.joined_at)


def is_unread(thread: Any, person_id: uuid.UUID) -> bool:
    """Return whether the thread (with this person's marks) has news and is not muted."""
    return thread.muted_at is None and has_news(thread, person_id)


def mark_read(thread: Any, person_id: uuid.UUID) -> None:
    """Mark everything complete in the thread as read; write nothing if it is read already.

    The thread has this person's marks and `has_unseen_mention`.
    """
    if has_news(thread, person_id):
        ensure_marker(thread, person_id)
        notify_after_commit([person_id], ListChange(thread.id, is_mention_seen=thread.has_unseen_mention))


def ensure_marker(thread: Thread, person_id: uuid.UUID) -> None:
    """Set the read marker to now; answers that complete later are unread."""
    _write(thread, person_id, last_read_at=timezone.now())


def set_pinned(thread: Thread, person_id: uuid.UUID, is_pinned: bool) -> None:
    """Pin the thread to the top of this person's list, or unpin it."""
    _change(thread, person_id, pinned_at=timezone.now() if is_pinned else None)


def set_muted(thread: Thread, person_id: uuid.UUID, is_muted: bool) -> None:
    """Show this person no unread marks and no notifications of the thread, or show them again."""
    _change(thread, person_id, muted_at=timezone.now() if is_muted else None)


def set_archived(thread: Thread, person_id: uuid.UUID, is_archived: bool) -> None:
    """Remove the thread from this person's list, or list it again, pinned as before; search finds it in either case."""
    _change(thread, person_id, archived_at=timezone.now() if is_archived else None)


@transaction.atomic
def _change(thread: Thread, person_id: uuid.UUID, **marks: Any) -> None:
    _write(thread, person_id, **marks)
    notify_after_commit([person_id])


def _write(thread: Thread, person_id: uuid.UUID, **marks: Any) -> None:
    row = ReaderMarks(person_id=person_id, thread=thread, **marks)
    ReaderMarks.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["person", "thread"], update_fields=list(marks)
    )

"""Presence: who has a shared thread open."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from chat.models import ReadMarker, Thread
from memory.api import Space

_PRESENCE_TTL = timedelta(seconds=12)  # the watchdog records presence every three seconds
Presence = tuple[uuid.UUID, uuid.UUID]


def record_presence(presences: Iterable[Presence]) -> None:
    """Record for pairs of thread and person that the person has the thread open, if the thread is shared."""
    pairs = set(presences)
    shared = Thread.objects.filter(id__in={thread for thread, _ in pairs}).exclude(space__kind=Space.Kind.PERSONAL)
    ids = set(shared.values_list("id", flat=True))
    now = timezone.now()
    marks = [
        ReadMarker(thread_id=thread, person_id=person, last_read_at=now, last_present_at=now)
        for thread, person in pairs
        if thread in ids
    ]
    ReadMarker.objects.bulk_create(
        marks, update_conflicts=True, unique_fields=["person", "thread"], update_fields=["last_present_at"]
    )


@dataclass(frozen=True, slots=True)
class PresentUser:
    """A person who has a thread open."""

    name: str
    initials: str


def present_users(thread_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, tuple[PresentUser, ...]]:
    """Return the people who have each of these threads open, by name, for threads with more than one of them."""
    marks = ReadMarker.objects.filter(
        thread__in=set(thread_ids), last_present_at__gt=timezone.now() - _PRESENCE_TTL, person__is_active=True
    )
    present: dict[uuid.UUID, list[PresentUser]] = defaultdict(list)
    for mark in marks.select_related("person").order_by("person__name", "person_id"):
        present[mark.thread_id].append(PresentUser(mark.person.name, mark.person.initials))
    return {thread_id: tuple(rows) for thread_id, rows in present.items() if len(rows) > 1}

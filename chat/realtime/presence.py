"""Who has a shared thread open right now."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from chat.models import ReadMark, Thread
from memory.api import Space

# A page says every few seconds that it is open; who has not been heard of for so long is gone.
_GONE_AFTER = timedelta(seconds=12)
Presence = tuple[uuid.UUID, uuid.UUID]


def record_presence(seats: Iterable[Presence]) -> None:
    """These people (thread, person) have a page of the thread open; noted for threads that others read too."""
    given = set(seats)
    shared = Thread.objects.filter(id__in={thread for thread, _ in given}).exclude(space__kind=Space.Kind.OWN)
    ids = set(shared.values_list("id", flat=True))
    now = timezone.now()
    marks = [
        ReadMark(thread_id=thread, person_id=person, seen_at=now, here_at=now)
        for thread, person in given
        if thread in ids
    ]
    ReadMark.objects.bulk_create(
        marks, update_conflicts=True, unique_fields=["person", "thread"], update_fields=["here_at"]
    )


@dataclass(frozen=True, slots=True)
class PresentUser:
    name: str
    initials: str


def present_users(thread_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, tuple[PresentUser, ...]]:
    """Those who have each of these threads open, by name, where they are more than one."""
    marks = ReadMark.objects.filter(
        thread__in=set(thread_ids), here_at__gt=timezone.now() - _GONE_AFTER, person__is_active=True
    )
    here: dict[uuid.UUID, list[PresentUser]] = defaultdict(list)
    for mark in marks.select_related("person").order_by("person__name", "person_id"):
        here[mark.thread_id].append(PresentUser(mark.person.name, mark.person.initials))
    return {thread_id: tuple(rows) for thread_id, rows in here.items() if len(rows) > 1}

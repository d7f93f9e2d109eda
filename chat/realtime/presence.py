"""Presence: who has a shared thread open, and who had it open before.

People who do not show when they are viewing a thread neither appear here nor see others.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from chat.models import ReaderMarks, Thread
from memory import api as memory
from memory.api import Space

# The watchdog records presence every three seconds. Who closes a page has left at once; this is for lost processes.
_PRESENCE_TTL = timedelta(seconds=12)
_MAX_VISITORS = 30
Presence = tuple[uuid.UUID, uuid.UUID]


def record_presence(presences: Iterable[Presence]) -> None:
    """Record for pairs of thread and person that the person has the thread open, if the thread is shared."""
    pairs = set(presences)
    ids = _shared_ids({thread for thread, _ in pairs})
    _record({pair for pair in pairs if pair[0] in ids})


def _record(pairs: set[Presence]) -> None:
    if not pairs:
        return
    shown = set(_shown_people().filter(id__in={person for _, person in pairs}).values_list("id", flat=True))
    now = timezone.now()
    marks = [
        ReaderMarks(thread_id=thread, person_id=person, last_read_at=now, last_present_at=now)
        for thread, person in pairs
        if person in shown
    ]
    ReaderMarks.objects.bulk_create(
        marks, update_conflicts=True, unique_fields=["person", "thread"], update_fields=["last_present_at"]
    )


def record_arrivals_and_departures(arrived: Iterable[Presence], left: Iterable[Presence]) -> set[uuid.UUID]:
    """Record who has just opened and who has just left a thread; return the ids of the shared threads among these."""
    arrived, left = set(arrived), set(left)
    shared = _shared_ids({thread for thread, _ in arrived | left})
    _record({pair for pair in arrived if pair[0] in shared})
    gone = [Q(thread=thread, person=person) for thread, person in left if thread in shared]
    if gone:
        marks = ReaderMarks.objects.filter(reduce(or_, gone), last_present_at__isnull=False)
        marks.update(left_at=timezone.now())
    return shared


def present_people(thread_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, frozenset[uuid.UUID]]:
    """Return the ids of the people who have each of these threads open, for threads with anyone."""
    marks = ReaderMarks.objects.filter(
        thread__in=set(thread_ids), last_present_at__gt=timezone.now() - _PRESENCE_TTL, person__in=_shown_people()
    )
    marks = marks.exclude(left_at__gte=F("last_present_at"))
    present: dict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    for thread_id, person_id in marks.values_list("thread_id", "person_id"):
        present[thread_id].add(person_id)
    return {thread_id: frozenset(people) for thread_id, people in present.items()}


@dataclass(frozen=True, slots=True)
class Visitor:
    """A reader who has the thread open, or had it open at `last_seen_at`."""

    name: str
    initials: str
    is_present: bool
    last_seen_at: datetime


def visitors(thread: Thread) -> list[Visitor]:
    """Return the present readers of a shared thread, by name, then those who had it open last; [] for a single one."""
    marks = ReaderMarks.objects.filter(
        thread=thread, last_present_at__isnull=False, person__in=memory.readers(thread.space, _shown_people())
    )
    latest = marks.select_related("person").order_by("-last_present_at")[:_MAX_VISITORS]
    now = timezone.now()
    rows = [
        Visitor(mark.person.name, mark.person.initials, _is_present(mark, now), mark.last_present_at)
        for mark in latest
        if mark.last_present_at is not None
    ]
    present = sorted((row for row in rows if row.is_present), key=lambda row: row.name)
    ordered = [*present, *(row for row in rows if not row.is_present)]
    return ordered if len(ordered) > 1 else []


def name_if_shown(person_id: uuid.UUID) -> str | None:
    """Return the name of this person; None if they are not shown to others."""
    return _shown_people().filter(id=person_id).values_list("name", flat=True).first()


def _shared_ids(thread_ids: set[uuid.UUID]) -> set[uuid.UUID]:
    shared = Thread.objects.filter(id__in=thread_ids).exclude(space__kind=Space.Kind.PERSONAL)
    return set(shared.values_list("id", flat=True))


def _is_present(mark: ReaderMarks, now: datetime) -> bool:
    seen_at = mark.last_present_at
    return seen_at is not None and seen_at > now - _PRESENCE_TTL and (mark.left_at is None or mark.left_at < seen_at)


def _shown_people() -> QuerySet[Any]:
    return get_user_model().objects.filter(is_active=True, shows_presence=True)

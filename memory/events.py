"""The event feed: services record what they change, and programs read it in an order that never changes.

An event is inserted in the transaction of its change. The ids of the rows do not give a stable order: PostgreSQL assigns
an id at the insert, so that a row with a smaller id can become visible later, after a reader has passed its place. The
place of an event in the feed is therefore its position, which is null at first. Who reads the feed first assigns
positions to all events that are committed by then, under the lock of the only row of EventFeed. Positions are
consecutive, and whatever is committed later gets a greater one.

The first position comes from the clock, in milliseconds: a feed that begins again, after a restore of a backup, has
greater positions than the former one, whose positions are therefore recognised as expired.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.errors import EventsExpiredError
from memory.models import Document, Event, EventFeed, Exchange
from memory.spaces.access import SpaceIds, in_spaces

# Maximum number of positions that one reader assigns, so that a large import does not delay its response.
_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in the order of the feed. `next` continues after them; `last` is the position of the newest event of all."""

    events: list[Event]
    next: int
    has_more: bool
    last: int


def record_events(
    kind: Event.Kind, rows: Iterable[Exchange] | Iterable[Document], *, space_id: uuid.UUID | None = None
) -> None:
    """Record an event for each row with one insert, in the caller's transaction.

    `space_id`: the space in which it happened, None: that of the row.
    """
    Event.objects.bulk_create(
        Event(
            kind=kind,
            object_id=row.pk,
            thread_id=row.thread_id if isinstance(row, Exchange) else None,
            space_id=space_id or row.space_id,
        )
        for row in rows
    )


def feed_range() -> tuple[int, int]:
    """Return the position after which events are kept, and that of the newest event of all."""
    while _assign_positions():
        pass
    feed = _get_feed()
    return feed.removed_through, feed.last_position


def list_events(
    *, spaces: SpaceIds, after: int | None, limit: int, through: int | None = None, kinds: Collection[str] = ()
) -> EventPage:
    """Return up to `limit` events of `spaces` after this position, None: from the oldest that is kept.

    `through`: up to this position, None: to the end of the feed. `kinds`: only these kinds, if any are given. Raises
    EventsExpiredError if events after this position were removed, and if the feed has not come so far.
    """
    has_unassigned = _assign_positions()
    feed = _get_feed()
    start = feed.removed_through if after is None else after
    if start > feed.last_position:
        raise _expired(feed)
    end = feed.last_position if through is None else min(through, feed.last_position)
    later = Event.objects.filter(position__gt=start, position__lte=end)
    if kinds:
        later = later.filter(kind__in=kinds)
    rows = list(in_spaces(later, spaces).order_by("position")[: limit + 1])
    # Read after the rows, some of which may have been removed meanwhile.
    if after is not None and after < _get_feed().removed_through:
        raise _expired(feed)
    page = rows[:limit]
    is_full = len(rows) > limit
    return EventPage(
        events=page,
        next=cast(int, page[-1].position) if is_full else end,
        has_more=is_full or has_unassigned or end < feed.last_position,
        last=feed.last_position,
    )


def delete_old_events() -> int:
    """Delete the events that are older than `api.keep_events_days`; return their number."""
    while _assign_positions():
        pass
    kept_since = timezone.now() - timedelta(days=settings.CATO.api.keep_events_days)
    with transaction.atomic():
        feed = EventFeed.objects.select_for_update().get(pk=_get_feed().pk)
        placed = Event.objects.exclude(position=None).order_by("position")
        oldest_kept = placed.filter(created_at__gte=kept_since).values_list("position", flat=True).first()
        feed.removed_through = feed.last_position if oldest_kept is None else oldest_kept - 1
        feed.save(update_fields=["removed_through"])
        count, _by_model = Event.objects.filter(position__lte=feed.removed_through).delete()
    return count


def _assign_positions() -> bool:
    """Assign positions to events without one, at most `_BATCH_SIZE`; return True if there may be more."""
    unassigned = Event.objects.filter(position=None).order_by("id")
    if not unassigned.exists():
        return False
    feed_id = _get_feed().pk
    with transaction.atomic():
        feed = EventFeed.objects.select_for_update().get(pk=feed_id)
        events = list(unassigned[:_BATCH_SIZE])
        for event in events:
            feed.last_position += 1
            event.position = feed.last_position
        Event.objects.bulk_update(events, ["position"])
        feed.save(update_fields=["last_position"])
    return len(events) == _BATCH_SIZE


def _get_feed() -> EventFeed:
    """Return the only row, creating it on first use."""
    found = EventFeed.objects.filter(pk=1).first()
    if found is None:
        start = time.time_ns() // 1_000_000
        found, _is_new = EventFeed.objects.get_or_create(
            pk=1, defaults={"last_position": start, "removed_through": start}
        )
    return found


def _expired(feed: EventFeed) -> EventsExpiredError:
    sentence = _(
        "The feed does not have everything after this position. Read the lists again, and then continue with "
        "after=%(position)s."
    )
    return EventsExpiredError(sentence % {"position": feed.last_position})

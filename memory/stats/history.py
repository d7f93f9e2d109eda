"""How memory grew and was used over time, counted at the ends of equal spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from memory.models import Exchange, Recall
from memory.spaces.access import SpaceIds, in_spaces

WEEK, DAY = timedelta(days=7), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """What was answered from `begin` to `end`, and for how much of it something was recalled."""

    begin: datetime
    end: datetime
    answers: int
    with_context: int

    @property
    def share(self) -> float | None:
        return self.with_context / self.answers if self.answers else None


def period_ends(count: int, span: timedelta) -> list[datetime]:
    """The ends of the last `count` spans, oldest first; the last is now, the first the beginning of the first."""
    now = timezone.now()
    return [now - span * back for back in range(count, -1, -1)]


def growth_counts(spaces: SpaceIds | None, at: Sequence[datetime]) -> list[int]:
    """How many of the exchanges that are remembered now were there at each of these times."""
    counts = {f"n{number}": Count("pk", filter=Q(created_at__lte=end)) for number, end in enumerate(at)}
    found = _remembered(spaces).aggregate(**counts)
    return [found[name] for name in counts]


def first_exchange_at(spaces: SpaceIds | None) -> datetime | None:
    """When the first of what is remembered now was; None without any."""
    first: datetime | None = _remembered(spaces).aggregate(first=Min("created_at"))["first"]
    return first


def answers(spaces: SpaceIds | None, at: Sequence[datetime]) -> list[TimeRange]:
    """For each span between these times the answers that are remembered, and those that had something recalled."""
    recalled = Exists(Recall.objects.filter(turn_id=OuterRef("turn_id")))
    rows = _remembered(spaces).filter(turn_id__isnull=False, timestamp__gt=at[0])
    said = list(rows.annotate(recalled=recalled).values_list("timestamp", "recalled"))
    return [
        TimeRange(
            begin,
            end,
            answers=sum(begin < moment <= end for moment, _ in said),
            with_context=sum(had and begin < moment <= end for moment, had in said),
        )
        for begin, end in pairwise(at)
    ]


def recalls(spaces: SpaceIds | None, at: Sequence[datetime]) -> list[int]:
    """How often something was recalled in each span between these times, for what is itself remembered in `spaces`."""
    rows = Recall.objects.filter(at__gt=at[0])
    if spaces is not None:
        rows = rows.filter(Exists(_remembered(spaces).filter(turn_id=OuterRef("turn_id"))))
    counts = {
        f"n{number}": Count("pk", filter=Q(at__gt=begin, at__lte=end))
        for number, (begin, end) in enumerate(pairwise(at))
    }
    found = rows.aggregate(**counts)
    return [found[name] for name in counts]


def count_by_owner(spaces: SpaceIds | None, *, most: int = 10) -> list[tuple[str, int]]:
    """Whose exchanges these are, the most first."""
    rows = _remembered(spaces).values_list("owner__name").annotate(n=Count("pk")).order_by("-n", "owner__name")
    return list(rows[:most])


def count_forgotten_since(spaces: SpaceIds | None, since: datetime) -> int:
    """How many exchanges were forgotten since then, pieces of documents among them."""
    rows = Exchange.objects.filter(forgotten_at__gt=since)
    return (rows if spaces is None else in_spaces(rows, spaces)).count()


def _remembered(spaces: SpaceIds | None) -> QuerySet[Exchange]:
    rows: QuerySet[Exchange] = Exchange.objects.findable()
    return rows if spaces is None else in_spaces(rows, spaces)

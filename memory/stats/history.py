"""Growth and use of memory over time, in equal periods."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from memory.models import Exchange, RecallLogEntry
from memory.spaces.access import SpaceIds, in_spaces

# The date by which exchanges are counted: of the message, or when it was stored. They differ after an import.
DateField = Literal["timestamp", "created_at"]
WEEK, DAY = timedelta(days=7), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The number of answers of a period that ends at `end`, and how many of them had recalled exchanges."""

    end: datetime
    answers: int
    with_context: int

    @property
    def share(self) -> float | None:
        """Return the share of answers with recalled exchanges, None without answers."""
        return self.with_context / self.answers if self.answers else None


def period_ends(count: int, span: timedelta) -> list[datetime]:
    """Return the limits of the last `count` periods, oldest first: `count` + 1 times, of which the last is now."""
    now = timezone.now()
    return [now - span * number for number in range(count, -1, -1)]


def growth_counts(spaces: SpaceIds | None, at: Sequence[datetime], by: DateField = "created_at") -> list[int]:
    """Return for each time how many of the exchanges that are findable now have an earlier date."""
    counts = {f"n{number}": Count("pk", filter=Q(**{f"{by}__lte": end})) for number, end in enumerate(at)}
    found = _findable(spaces).aggregate(**counts)
    return [found[name] for name in counts]


def first_exchange_at(spaces: SpaceIds | None, by: DateField = "created_at") -> datetime | None:
    """Return the date of the oldest findable exchange, or None."""
    first: datetime | None = _findable(spaces).aggregate(first=Min(by))["first"]
    return first


def recall_rates(spaces: SpaceIds | None, at: Sequence[datetime]) -> list[TimeRange]:
    """Return for each period between these times the number of answers, and of those with recalled exchanges."""
    recalled = Exists(RecallLogEntry.objects.filter(turn_id=OuterRef("turn_id")))
    rows = _findable(spaces).filter(turn_id__isnull=False, timestamp__gt=at[0])
    answers, with_context = Counter[int](), Counter[int]()
    for moment, was_recalled in rows.annotate(recalled=recalled).values_list("timestamp", "recalled").iterator():
        period = bisect_left(at, moment)
        answers[period] += 1
        with_context[period] += was_recalled
    return [TimeRange(end, answers[period], with_context[period]) for period, end in enumerate(at[1:], start=1)]


def recall_counts(spaces: SpaceIds | None, at: Sequence[datetime]) -> list[int]:
    """Return the number of recalled passages in each period, for turns whose own exchange is in `spaces`."""
    rows = RecallLogEntry.objects.filter(at__gt=at[0])
    if spaces is not None:
        rows = rows.filter(Exists(_findable(spaces).filter(turn_id=OuterRef("turn_id"))))
    # The exchanges of one passage have the same rank.
    passages = rows.values("turn_id", "rank").annotate(first_at=Min("at"))
    counts = {
        f"n{number}": Count("rank", filter=Q(first_at__gt=begin, first_at__lte=end))
        for number, (begin, end) in enumerate(pairwise(at))
    }
    found = passages.aggregate(**counts)
    return [found[name] for name in counts]


def count_by_owner(spaces: SpaceIds | None) -> list[tuple[str, int]]:
    """Return the ten highest numbers of exchanges per owner's name, highest first."""
    rows = _findable(spaces).values_list("owner__name").annotate(n=Count("pk")).order_by("-n", "owner__name")
    return list(rows[:10])


def count_forgotten_since(spaces: SpaceIds | None, since: datetime) -> int:
    """Return how many exchanges, including chunks of documents, were forgotten since then."""
    rows = Exchange.objects.filter(forgotten_at__gt=since)
    return (rows if spaces is None else in_spaces(rows, spaces)).count()


def _findable(spaces: SpaceIds | None) -> QuerySet[Exchange]:
    rows: QuerySet[Exchange] = Exchange.objects.findable()
    return rows if spaces is None else in_spaces(rows, spaces)

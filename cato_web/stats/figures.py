"""What the statistics page counts. In a large store that takes seconds, so it is cached there."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from chat import stats as answer_stats
from chat.cached_values import keep, kept
from memory import api as memory

_MONTH = timedelta(days=30)
_GROWTH_WEEKS, _MIN_GROWTH_WEEKS, _RECALL_WEEKS, _DAYS = 26, 8, 12, 14
# What takes longer than this to count is cached, but not with few exchanges: there only a busy machine takes long, and
# the next count is quick.
_QUICK, _MIN_CACHED_EXCHANGES = 0.1, 1_000  # seconds, exchanges
# Figures are cached for 100 times as long as counting took, at most for 600 seconds.
_CACHED_TIMES, _MAX_CACHED = 100, 600


@dataclass(frozen=True, slots=True)
class Figures:
    """All counts of the page; recent ones are of the last 30 days. `growth` and `recalls` are in the order of time."""

    counted_at: datetime
    counts: memory.MemoryCounts
    recently_stored: int
    recently_forgotten: int
    recently_failed: int
    recently_skipped: int
    recall_rate: memory.RecallRate
    recall_latency: answer_stats.LatencyPercentiles | None
    growth: Sequence[tuple[datetime, int]]
    recall_rates: Sequence[memory.TimeRange]
    recalls: Sequence[tuple[datetime, int]]
    owners: Sequence[tuple[str, int]]
    tokens: Sequence[answer_stats.TokenUsage]
    drift: memory.Drift | None  # None: not known, or not of all spaces


def figures(spaces: memory.SpaceIds | None, by: memory.DateField) -> tuple[Figures, bool]:
    """Return the figures of `spaces` (None: all) with the growth by this date, and whether they are from the cache.

    Cached ones are at most ten minutes old.
    """
    scope = "all" if spaces is None else hashlib.sha256(" ".join(sorted(map(str, spaces))).encode()).hexdigest()
    key = f"statistics:{by}:{scope}"
    if (found := kept(key, Figures)) is not None:
        return found, True
    started = time.monotonic()
    counted = _count(spaces, by)
    took = time.monotonic() - started
    if took > _QUICK and counted.counts.exchanges >= _MIN_CACHED_EXCHANGES:
        keep(key, counted, min(math.ceil(_CACHED_TIMES * took), _MAX_CACHED))
    return counted, False


def _count(spaces: memory.SpaceIds | None, by: memory.DateField) -> Figures:
    now = timezone.now()
    since = now - _MONTH
    before, after = memory.growth_counts(spaces, [since, now])
    days = memory.period_ends(_DAYS, memory.DAY)
    return Figures(
        counted_at=now,
        counts=memory.memory_counts(spaces),
        recently_stored=after - before,
        recently_forgotten=memory.count_forgotten_since(spaces, since),
        recently_failed=answer_stats.count_failures(spaces, since=since),
        recently_skipped=answer_stats.count_skipped_recalls(spaces, since=since),
        recall_rate=memory.recall_rate(spaces),
        recall_latency=answer_stats.recall_latency(spaces),
        growth=_growth(spaces, by, now),
        recall_rates=memory.recall_rates(spaces, memory.period_ends(_RECALL_WEEKS, memory.WEEK)),
        recalls=list(zip(days[1:], memory.recall_counts(spaces, days), strict=True)),
        owners=memory.count_by_owner(spaces),
        tokens=answer_stats.token_usage(spaces, since=since),
        drift=_drift() if spaces is None else None,
    )


def _drift() -> memory.Drift | None:
    try:
        return memory.measure_drift()
    except (memory.VectorStoreUnavailableError, memory.VectorStoreDisabledError):
        return None


def _growth(spaces: memory.SpaceIds | None, by: memory.DateField, now: datetime) -> list[tuple[datetime, int]]:
    """Return how many there were at the end of each week; empty without exchanges."""
    first = memory.first_exchange_at(spaces, by)
    if first is None:
        return []
    weeks = min(_GROWTH_WEEKS, max(_MIN_GROWTH_WEEKS, (now - first) // memory.WEEK + 1))
    at = memory.period_ends(weeks, memory.WEEK)
    return list(zip(at, memory.growth_counts(spaces, at, by), strict=True))

"""What answers cost: how long recall took, which model said how much for whom, and how answers ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, FloatField, QuerySet, Sum, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from chat.llm.events import MAX_TOKENS
from chat.models import Turn
from memory.api import SpaceIds

_NEWEST = 1000


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Milliseconds that recall took before the model was asked, over the newest answers."""

    answers: int
    median: int
    worst_tenth: int
    worst_hundredth: int


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What one model was sent and said for one person."""

    model: str
    person: str
    answers: int
    sent: int
    said: int


def latency(spaces: SpaceIds | None) -> LatencyPercentiles | None:
    """None where nothing was measured yet."""
    measured = _turns(spaces).exclude(recall_ms=None).order_by("-created_at")
    taken = sorted(ms or 0 for ms in measured.values_list("recall_ms", flat=True)[:_NEWEST])
    if not taken:
        return None

    def worst(share: float) -> int:
        return taken[min(len(taken) - 1, int(len(taken) * (1 - share)))]

    return LatencyPercentiles(len(taken), worst(0.5), worst(0.1), worst(0.01))


def tokens(spaces: SpaceIds | None, *, since: datetime, most: int = 20) -> list[TokenUsage]:
    """By model and person, the most first; of endpoints that tell it."""
    rows = _turns(spaces).filter(created_at__gt=since, is_dummy=False).exclude(usage={})
    summed = rows.values_list("model", "author__name").annotate(
        n=Count("pk"), sent=_sum_of("prompt_tokens"), said=_sum_of("completion_tokens")
    )
    rows_of_most = summed.order_by("-sent", "model", "author__name")[:most]
    return [TokenUsage(model, person, n, int(sent), int(said)) for model, person, n, sent, said in rows_of_most]


def failures(spaces: SpaceIds | None, *, since: datetime) -> int:
    """Answers that failed since then."""
    return _turns(spaces).filter(created_at__gt=since, state=Turn.State.FAILED).count()


def _sum_of(key: str) -> Sum:
    """Of the numbers that can be true. What an endpoint sent is kept as it came in older rows: anything JSON can hold.

    As floating point numbers, for a sum of integers may be larger than a database counts.
    """
    is_sane = {f"usage__{key}__gte": 0, f"usage__{key}__lte": MAX_TOKENS}
    number = Cast(KT(f"usage__{key}"), FloatField())
    return Sum(Case(When(**is_sane, then=number), default=Value(0.0)))


def _turns(spaces: SpaceIds | None) -> QuerySet[Turn]:
    rows = Turn.objects.filter(thread__deleted_at=None)
    return rows if spaces is None else rows.filter(thread__space_id__in=list(spaces))

"""Statistics of answers: recall latency, token usage, failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, Exists, FloatField, OuterRef, QuerySet, Sum, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from chat.llm.events import MAX_TOKENS
from chat.models import Thread, Turn
from memory.api import SpaceIds

_MAX_ANSWERS, _MAX_ROWS = 1000, 20


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Percentiles of the recall latency of the newest answers, in milliseconds."""

    answers: int
    median: int
    p90: int
    p99: int


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one model for one person."""

    model: str
    person: str
    answers: int
    prompt_tokens: int
    completion_tokens: int


def recall_latency(spaces: SpaceIds | None) -> LatencyPercentiles | None:
    """Return the recall latency of the newest answers; None without answers."""
    measured = _turns(spaces).exclude(recall_ms=None).order_by("-created_at")
    durations = sorted(ms or 0 for ms in measured.values_list("recall_ms", flat=True)[:_MAX_ANSWERS])
    if not durations:
        return None

    def percentile(share: float) -> int:
        return durations[min(len(durations) - 1, int(len(durations) * share))]

    return LatencyPercentiles(len(durations), percentile(0.5), percentile(0.9), percentile(0.99))


def token_usage(spaces: SpaceIds | None, *, since: datetime) -> list[TokenUsage]:
    """Return the token usage by model and person, largest first, of endpoints that report it."""
    rows = _turns(spaces).filter(created_at__gt=since, is_dummy=False).exclude(usage={})
    summed = rows.values_list("model", "author__name").annotate(
        n=Count("pk"), sent=_sum_of("prompt_tokens"), received=_sum_of("completion_tokens")
    )
    largest = summed.order_by("-sent", "model", "author__name")[:_MAX_ROWS]
    return [TokenUsage(model, person, n, int(sent), int(received)) for model, person, n, sent, received in largest]


def count_failures(spaces: SpaceIds | None, *, since: datetime) -> int:
    """Return the number of answers that failed since then."""
    return _turns(spaces).filter(created_at__gt=since, state=Turn.State.FAILED).count()


def count_skipped_recalls(spaces: SpaceIds | None, *, since: datetime) -> int:
    """Return the number of answers since then that began without memory, because recall would have taken too long."""
    return _turns(spaces).filter(created_at__gt=since, recall_note=Turn.RECALL_SKIPPED).count()


def _sum_of(key: str) -> Sum:
    """Sum the plausible counts. Older rows can contain any JSON value that an endpoint sent.

    Floats, because the sum of integers can exceed the range of the database.
    """
    is_plausible = {f"usage__{key}__gte": 0, f"usage__{key}__lte": MAX_TOKENS}
    number = Cast(KT(f"usage__{key}"), FloatField())
    return Sum(Case(When(**is_plausible, then=number), default=Value(0.0)))


def _turns(spaces: SpaceIds | None) -> QuerySet[Turn]:
    threads = Thread.objects.filter(pk=OuterRef("thread"), deleted_at=None)
    # From the turns, which have an index of their date: with a join, SQLite would read all turns of the spaces.
    return Turn.objects.filter(Exists(threads if spaces is None else threads.filter(space_id__in=list(spaces))))

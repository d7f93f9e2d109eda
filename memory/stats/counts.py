"""Counts for `/vstats` and the statistics page."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, QuerySet

from memory.filters import Filter, to_sql, without_phrases
from memory.index import generations
from memory.models import EmbeddingJob, ErasureJob, Exchange, Job
from memory.spaces.access import SpaceIds, in_spaces


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Counts of the exchanges in the given spaces (None: all), and the active embedding model."""

    exchanges: int
    pending: int
    failed: int
    to_erase: int
    by_source: dict[str, int]
    model: str
    dimension: int | None
    strategy: str
    enabled: bool


def memory_counts(spaces: SpaceIds | None) -> MemoryCounts:
    """Count the exchanges in `spaces`; None counts all spaces, for administrators."""
    rows: QuerySet[Exchange] = Exchange.objects.findable()
    rows = rows if spaces is None else in_spaces(rows, spaces)
    generation = generations.active_generation()
    embeddings = EmbeddingJob.objects.filter(generation=generation, exchange__in=rows)
    states = dict(embeddings.values_list("state").annotate(n=Count("id")))
    erasures = ErasureJob.objects.filter(state=Job.State.PENDING)
    if spaces is not None:
        erasures = erasures.filter(exchange__space_id__in=list(spaces))
    return MemoryCounts(
        exchanges=rows.count(),
        pending=states.get(Job.State.PENDING, 0),
        failed=states.get(Job.State.FAILED, 0),
        to_erase=erasures.count(),
        by_source=dict(rows.values_list("source").annotate(n=Count("id")).order_by("-n")),
        model=f"{generation.provider}/{generation.model}",
        dimension=generation.dimension,
        strategy=settings.CATO.vector_store.retrieval_strategy,
        enabled=settings.CATO.vector_store.enabled,
    )


def count_findable(spaces: SpaceIds, filters: Filter | None = None) -> int:
    """Count the exchanges in `spaces` that a search with these filters covers; phrases do not limit what is searched."""
    rows = in_spaces(Exchange.objects.findable(), spaces)
    condition = without_phrases(filters) if filters else None
    return (rows.filter(to_sql(condition)) if condition else rows).count()


def count_unindexed(spaces: SpaceIds) -> int:
    """Count the exchanges in `spaces` that wait to be embedded, or failed, and are found by keyword only."""
    unindexed = EmbeddingJob.objects.filter(generation=generations.active_generation()).exclude(state=Job.State.DONE)
    return in_spaces(Exchange.objects.findable().filter(pk__in=unindexed.values("exchange")), spaces).count()

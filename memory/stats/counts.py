"""Counts for `/vstats` and the statistics page."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, QuerySet

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

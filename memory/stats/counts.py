"""Counts for `/vstats` and the statistics page."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, QuerySet

from memory.filters import Filter, to_sql, without_phrases
from memory.index import generations
from memory.models import EmbeddingJob, ErasureJob, Exchange, Job, is_findable
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
    by_source = dict(rows.values_list("source").annotate(n=Count("id")).order_by("-n"))
    embeddings = EmbeddingJob.objects.filter(is_findable("exchange"), generation=generation)
    erasures = ErasureJob.objects.filter(state=Job.State.PENDING)
    if spaces is not None:
        embeddings = embeddings.filter(exchange__space_id__in=list(spaces))
        erasures = erasures.filter(exchange__space_id__in=list(spaces))
    return MemoryCounts(
        exchanges=sum(by_source.values()),
        pending=embeddings.filter(state=Job.State.PENDING).count(),
        failed=embeddings.filter(state=Job.State.FAILED).count(),
        to_erase=erasures.count(),
        by_source=by_source,
        model=f"{generation.provider}/{generation.model}",
        dimension=generation.dimension,
        strategy=settings.CATO.vector_store.retrieval_strategy,
        enabled=settings.CATO.vector_store.enabled,
    )


def count_findable(spaces: SpaceIds, filters: Filter | None = None, *, most: int) -> int:
    """Count the exchanges in `spaces` that a search with these filters covers; phrases do not limit what is searched.

    If there are more than `most`, return `most` + 1.
    """
    rows = in_spaces(Exchange.objects.findable(), spaces)
    condition = without_phrases(filters) if filters else None
    return (rows.filter(to_sql(condition)) if condition else rows)[: most + 1].count()


def count_unindexed(spaces: SpaceIds) -> int:
    """Count the exchanges in `spaces` that wait to be embedded, or failed, and are found by keyword only."""
    jobs = EmbeddingJob.objects.filter(
        is_findable("exchange"), generation=generations.active_generation(), exchange__space_id__in=list(spaces)
    )
    # One by one, because each state has an index of its own.
    return sum(jobs.filter(state=state).count() for state in (Job.State.PENDING, Job.State.FAILED))

"""The strategies, each a line of stages: candidates, fusion, dates and recency, gate, diversity, rerank, results."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from memory.documents.locations import places_of
from memory.models import Exchange
from memory.retrieval import rerank
from memory.retrieval.candidates import Candidate, Pool, gather
from memory.retrieval.dates import Period, favour_named_dates, period_named
from memory.retrieval.diversity import spread, vary, without_repeats
from memory.retrieval.duplicates import without_near_duplicates
from memory.retrieval.explanations import reason_of
from memory.retrieval.fusion import fuse
from memory.retrieval.gate import is_below
from memory.retrieval.recency import asks_for_latest, favour_recent
from memory.retrieval.types import Query, Ranking, Remembered, Result


def default(query: Query) -> Ranking:
    """Rank by cosine similarity; the gate is one fixed threshold (or the rising one, by `dynamic_threshold`)."""
    pool = gather(query)
    order = _by_similarity(pool)
    return _results(_Ranked(pool, order, "default", is_below(query, pool, each=True)))


def dynamic(query: Query) -> Ranking:
    """Rank by cosine similarity; the longer the conversation, the more similar something must be."""
    pool = gather(query)
    order = _by_similarity(pool)
    return _results(_Ranked(pool, order, "dynamic", is_below(query, pool, rising=True)))


def hybrid(query: Query) -> Ranking:
    """Rank by meaning and words together, with the dates a question names; one gate for the whole question."""
    return _results(_fused(query, "hybrid"))


def temporal(query: Query) -> Ranking:
    """As hybrid; where the question asks for what is latest, older exchanges fade."""
    ranked = _fused(query, "temporal")
    if asks_for_latest(query.text):
        favour_recent(ranked.order, now=query.now, decay=settings.CATO.vector_store.temporal_decay)
        ranked.order = _best_first(ranked.order)
    return _results(ranked)


def diverse(query: Query) -> Ranking:
    """As hybrid, preferring what the results before do not say already."""
    ranked = _fused(query, "diverse")
    ranked.order = vary(ranked.order, wanted=query.wanted, balance=settings.CATO.vector_store.mmr_lambda)
    return _results(ranked)


@dataclass(slots=True)
class _Ranked:
    pool: Pool
    order: list[Candidate]
    strategy: str
    is_below: Callable[[Candidate], bool]
    period: Period | None = None


def _fused(query: Query, strategy: str) -> _Ranked:
    pool = gather(query)
    period = period_named(query.text, query.now)
    order = fuse(pool, lexical_weight=settings.CATO.vector_store.lexical_weight)
    favour_named_dates(order, period)
    return _Ranked(pool, _best_first(order), strategy, is_below(query, pool), period)


def _by_similarity(pool: Pool) -> list[Candidate]:
    if pool.by_words_alone:
        return _best_first(fuse(pool, lexical_weight=settings.CATO.vector_store.lexical_weight))
    found = [c for c in pool.candidates if c.similarity is not None]
    for candidate in found:
        candidate.score = candidate.similarity or 0.0
    return _best_first(found)


def _best_first(candidates: list[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, -c.timestamp.timestamp(), c.id))


def _varied(ranked: _Ranked, most: int) -> list[Candidate]:
    """The first `most` of the order, without repeats as far as the query wants it."""
    query = ranked.pool.query
    if query.keep_repeats:
        return ranked.order[:most]
    if not query.is_spread:
        return without_repeats(ranked.order, most)
    order = spread(ranked.order, most, passes=lambda candidate: not ranked.is_below(candidate))
    return order if ranked.pool.by_words_alone else without_near_duplicates(order, query)


def _results(ranked: _Ranked) -> Ranking:
    """Read the text of the best, and say why each of them is there."""
    query = ranked.pool.query
    most = 3 * query.wanted if rerank.is_configured() else query.wanted
    order = _varied(ranked, most)
    alive = Exchange.objects.findable().select_related("owner").only(*Remembered.COLUMNS)
    rows = {row.id.hex: row for row in alive.filter(id__in=[uuid.UUID(c.id) for c in order])}
    places = places_of(row.pk for row in rows.values() if row.source_file)
    results = []
    for candidate in order:
        if candidate.id not in rows:
            continue
        below = ranked.is_below(candidate)
        results.append(
            Result(
                exchange=Remembered.from_row(rows[candidate.id], places.get(rows[candidate.id].pk)),
                similarity=candidate.similarity,
                score=candidate.score,
                strategy=ranked.strategy,
                reason=reason_of(candidate, ranked.pool, period=ranked.period, is_below=below),
                is_below_gate=below,
                ranks=candidate.ranks,
            )
        )
    best = rerank.rerank(query.text, results)[: query.wanted]
    return Ranking(best, ranked.pool.by_words_alone, is_stale=len(results) < len(order))

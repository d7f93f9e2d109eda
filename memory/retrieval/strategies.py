"""The retrieval strategies, each a sequence of stages.

The stages are candidates, fusion, dates and recency, gate, diversity, reranking and results.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memory.retrieval import rerank
from memory.retrieval.candidates import Candidate, CandidatePool, gather_candidates
from memory.retrieval.dates import DateRange, boost_date_range, parse_date_range
from memory.retrieval.diversity import deduplicate, mmr, spread
from memory.retrieval.duplicates import find_copies, repeated_texts, without_near_duplicates
from memory.retrieval.exchange_views import load_views
from memory.retrieval.explanations import explain
from memory.retrieval.fusion import fuse
from memory.retrieval.gate import relevance_filter, without_tail
from memory.retrieval.levels import configured_level
from memory.retrieval.repetition import repeats
from memory.retrieval.statement_hits import with_statements
from memory.retrieval.subjects import related_messages
from memory.retrieval.text_vectors import load_text_vectors
from memory.retrieval.types import Hit, Query, RankedHits, SubjectOrder

# Probabilities from which a message counts as asking for the latest, and for a former state.
_ASKS_FOR_LATEST = 0.7
_ASKS_FOR_FORMER = 0.35
# Probability from which a message counts as a broad question, low because most of the examples are not.
_IS_BROAD = 0.3


def default(query: Query) -> RankedHits:
    """Rank by cosine similarity; the gate is one fixed threshold, or the rising one with `dynamic_threshold`."""
    pool = gather_candidates(query)
    order = _rank_by_similarity(pool)
    return _build_hits(_RankedPool(pool, order, "default", relevance_filter(query, pool, each=True)))


def dynamic(query: Query) -> RankedHits:
    """Rank by cosine similarity; the gate's threshold rises with the length of the conversation."""
    pool = gather_candidates(query)
    order = _rank_by_similarity(pool)
    return _build_hits(_RankedPool(pool, order, "dynamic", relevance_filter(query, pool, rising=True)))


def hybrid(query: Query) -> RankedHits:
    """Rank by vectors and terms together, boosting dates named in the query; one gate decides for the whole query."""
    return _build_hits(_rank_fused(query, "hybrid"))


def temporal(query: Query) -> RankedHits:
    """Rank like `hybrid`, and reduce the scores of older exchanges if the query asks for the latest."""
    ranked = _rank_fused(query, "temporal")
    if query.traits is not None and query.traits.latest_state >= _ASKS_FOR_LATEST:
        apply_recency_decay(ranked.order, now=query.now, decay=settings.CATO.vector_store.temporal_decay)
        ranked.order = _sort_by_score(ranked.order)
    return _build_hits(ranked)


def diverse(query: Query) -> RankedHits:
    """Rank like `hybrid`, then reorder by maximal marginal relevance to avoid repetition."""
    ranked = _rank_fused(query, "diverse")
    ranked.order = mmr(ranked.order, limit=query.limit, balance=settings.CATO.vector_store.mmr_lambda)
    return _build_hits(ranked)


def apply_recency_decay(candidates: list[Candidate], *, now: datetime, decay: float) -> None:
    """Multiply every score by `decay` for each day that has passed since the exchange."""
    for candidate in candidates:
        days = max(0.0, (now - candidate.timestamp).total_seconds() / 86_400)
        candidate.score *= decay**days


@dataclass(slots=True)
class _RankedPool:
    pool: CandidatePool
    order: list[Candidate]
    strategy: str
    is_below: Callable[[Candidate], bool]
    period: DateRange | None = None
    is_fused: bool = False


def _rank_fused(query: Query, strategy: str) -> _RankedPool:
    pool = gather_candidates(query)
    period = parse_date_range(query.text, query.now)
    order = fuse(pool, lexical_weight=settings.CATO.vector_store.lexical_weight)
    boost_date_range(order, period)
    return _RankedPool(pool, _sort_by_score(order), strategy, relevance_filter(query, pool), period, is_fused=True)


def _rank_by_similarity(pool: CandidatePool) -> list[Candidate]:
    if pool.is_lexical_only:
        return _sort_by_score(fuse(pool, lexical_weight=settings.CATO.vector_store.lexical_weight))
    similar = [c for c in pool.candidates if c.similarity is not None]
    for candidate in similar:
        candidate.score = candidate.similarity or 0.0
    return _sort_by_score(similar)


def _sort_by_score(candidates: list[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, -c.timestamp.timestamp(), c.id))


def _diversify(ranked: _RankedPool, limit: int, copies: Mapping[str, str]) -> list[Candidate]:
    """Return the first `limit` candidates, without near-duplicates unless the query keeps them, and with few `copies`."""
    query = ranked.pool.query
    if query.keep_duplicates:
        return ranked.order[:limit]
    if not query.limits_sources:
        return deduplicate(ranked.order, limit)
    return spread(ranked.order, limit, passes=lambda candidate: not ranked.is_below(candidate), copies=copies)


def _find_copies(ranked: _RankedPool) -> dict[str, str]:
    """Return which candidates are copies of others, if several people have repetitions of the question among the best."""
    query = ranked.pool.query
    if query.keep_duplicates or not query.limits_sources or ranked.pool.is_lexical_only:
        return {}
    is_repetition = repeats(query.text)
    passing = [candidate for candidate in ranked.order if not ranked.is_below(candidate)]
    if len({c.owner_id for c in passing[: 3 * query.limit] if is_repetition(c.terms)}) < 2:
        return {}
    level = configured_level(query.generation.model)
    repeating = [candidate for candidate in passing if is_repetition(candidate.terms)]
    return find_copies(repeating, load_text_vectors(repeating, ranked.pool), level)


def _compare(ranked: _RankedPool, order: list[Candidate]) -> tuple[list[Candidate], dict[str, frozenset[uuid.UUID]]]:
    """Compare the candidates that a recall may use: drop near-duplicates, and relate messages on one subject."""
    passing = [candidate for candidate in order if not ranked.is_below(candidate)]
    if len(passing) < 2 or ranked.pool.is_lexical_only:
        return order, {}
    level = configured_level(ranked.pool.query.generation.model)
    vectors = load_text_vectors(passing, ranked.pool)
    order = without_near_duplicates(order, vectors, level)
    return order, related_messages(order, vectors, level)


def _subject_order(ranked: _RankedPool) -> SubjectOrder:
    if _is_broad(ranked.pool.query):
        return SubjectOrder.CHRONOLOGICAL
    if ranked.period is not None:
        return SubjectOrder.BY_SCORE
    return SubjectOrder.EARLIER_FIRST if _asks_for_former(ranked.pool.query) else SubjectOrder.LATER_FIRST


def _asks_for_former(query: Query) -> bool:
    return query.traits is not None and query.traits.former_state >= _ASKS_FOR_FORMER


def _is_broad(query: Query) -> bool:
    """Return True if the message asks for a summary, a list or an order of events."""
    return query.traits is not None and query.traits.broad >= _IS_BROAD


def _build_hits(ranked: _RankedPool) -> RankedHits:
    """Load the texts of the best candidates and explain each hit."""
    query = ranked.pool.query
    limit = 3 * query.limit if rerank.is_configured() else query.limit
    copies = _find_copies(ranked)
    order = _diversify(ranked, limit, copies)
    related: dict[str, frozenset[uuid.UUID]] = {}
    if query.limits_sources:
        order, related = _compare(ranked, order)
        # A broad question needs many excerpts, which are less similar to it than one answer.
        if ranked.is_fused and not ranked.pool.is_lexical_only and not _is_broad(query):
            ranked.is_below = without_tail(order, related, ranked.is_below, repeated=repeated_texts(copies))
    views = load_views(uuid.UUID(candidate.id) for candidate in order)
    results = []
    for candidate in order:
        exchange = views.get(uuid.UUID(candidate.id))
        if exchange is None:
            continue
        below = ranked.is_below(candidate)
        results.append(
            Hit(
                exchange=exchange,
                similarity=candidate.similarity,
                score=candidate.score,
                strategy=ranked.strategy,
                explanation=explain(
                    candidate, ranked.pool, exchange.user_message, period=ranked.period, is_below=below
                ),
                is_below_gate=below,
                ranks=candidate.ranks,
                related=related.get(candidate.id, frozenset()),
            )
        )
    is_stale = len(results) < len(order)
    results = with_statements(results, query, asks_for_former=_asks_for_former(query))
    best = rerank.rerank(query.text, results)[: query.limit]
    return RankedHits(
        best,
        ranked.pool.is_lexical_only,
        is_stale=is_stale,
        subject_order=_subject_order(ranked),
    )

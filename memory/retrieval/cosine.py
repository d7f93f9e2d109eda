"""The strategies `default` and `dynamic`: cosine similarity over a threshold."""

from __future__ import annotations

from django.conf import settings

from memory import generations
from memory.retrieval import thresholds
from memory.retrieval.results import Query, Result
from memory.retrieval.semantic import nearest


def default(query: Query) -> list[Result]:
    """Rank by cosine similarity; the gate is one fixed threshold (or the rising one, by `dynamic_threshold`)."""
    if settings.CATO.vector_store.dynamic_threshold:
        return _ranked(query, "default", thresholds.rising(query))
    return _ranked(query, "default", thresholds.static(generations.serving().model))


def dynamic(query: Query) -> list[Result]:
    """Rank by cosine similarity; the longer the conversation, the more similar something must be."""
    return _ranked(query, "dynamic", thresholds.rising(query))


def _ranked(query: Query, strategy: str, threshold: float) -> list[Result]:
    return [
        Result(
            exchange=exchange,
            similarity=similarity,
            score=similarity,
            strategy=strategy,
            reason=_reason(similarity, threshold),
            is_below_gate=similarity < threshold,
        )
        for exchange, similarity in nearest(query)
    ][: query.wanted]


def _reason(similarity: float, threshold: float) -> str:
    if similarity < threshold:
        return "Too far in meaning to be recalled by itself"
    room = 1.0 - threshold
    if similarity >= threshold + 0.5 * room:
        return "Very close in meaning to what you asked"
    if similarity >= threshold + 0.2 * room:
        return "Close in meaning to what you asked"
    return "Related in meaning to what you asked"

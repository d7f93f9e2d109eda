"""Fit the similarity of a relevant result on the stored exchanges, for the active embedding model.

A question with an answer is the second half of a sentence of an exchange that is excluded from the search. The
neighbours of the exchange are the answer; they are about as similar as an answer is to a rephrased question. If the
exchange itself were included, the search would find the same words. Measured: a gate fitted on that rejected at least
two thirds of real questions. Questions without an answer are the same questions with the whole session excluded.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from memory.documents.chunking.sentences import sentences
from memory.embeddings import cache
from memory.errors import InvalidInputError, VectorStoreUnavailableError
from memory.index import generations
from memory.models import Calibration, Exchange
from memory.retrieval import levels
from memory.retrieval.candidates import gather_candidates
from memory.retrieval.tuning.sampling import sample_exchanges
from memory.retrieval.types import Query
from memory.spaces import access
from memory.spaces.access import SpaceIds

# Numbers of exchanges: at most so many are sampled, and at least so many are needed.
SAMPLE = 200
MIN_EXCHANGES = 30
# Minimum shares of the answered questions that pass the gate, and of the unanswered ones that it rejects.
MIN_PASSED, MIN_REJECTED = 0.85, 0.90

# Characters of a message from which a question is made.
_MAX_CHARS = 2000
_MAX_NEIGHBOURS = 1000
# Limit of hits of a query. The evidence depends on the candidates, of which there are more.
_LIMIT = 5


@dataclass(frozen=True, slots=True)
class ThresholdStats:
    """The effect of a threshold: the shares of answered questions that pass, and of unanswered ones that it rejects."""

    threshold: float
    passed: float
    rejected: float


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The chosen and the previous threshold with their effects, and a table of thresholds around the chosen one."""

    provider: str
    model: str
    sample: int
    chosen: ThresholdStats
    before: ThresholdStats
    table: Sequence[ThresholdStats]


@dataclass(frozen=True, slots=True)
class CurrentThreshold:
    """The current threshold and its origin: "set", "fitted" (`at`, on `sample` exchanges) or "shipped"."""

    level: float
    origin: str
    at: datetime | None = None
    sample: int = 0


def fit_threshold(spaces: SpaceIds | None = None) -> CalibrationResult:
    """Fit the threshold on at most SAMPLE exchanges of `spaces` (None: all, each searched as its owner); save nothing.

    Raises InvalidInputError if the sample has fewer than MIN_EXCHANGES exchanges, or fewer than MIN_EXCHANGES with
    neighbours, and VectorStoreUnavailableError.
    """
    exchanges = sample_exchanges(SAMPLE, spaces)
    if len(exchanges) < MIN_EXCHANGES:
        raise InvalidInputError(
            f"Calibration needs at least {MIN_EXCHANGES} indexed exchanges; there are {len(exchanges)}."
        )
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    answered: list[float] = []
    unanswered: list[float] = []
    for exchange in exchanges:
        text = question_text(exchange)
        readable = access.readable_space_ids(exchange.owner_id) if spaces is None else spaces
        neighbours = _neighbours(exchange)
        if not text:
            continue
        if neighbours:
            answered.append(_best_similarity(text, readable, {exchange.id}))
        unanswered.append(_best_similarity(text, readable, {exchange.id, *neighbours}))
    if len(answered) < MIN_EXCHANGES:
        raise InvalidInputError(
            f"Of {len(exchanges)} sampled exchanges, {len(answered)} have neighbours in their session or document. "
            f"Calibration needs at least {MIN_EXCHANGES}."
        )
    chosen = choose_threshold(answered, unanswered)
    steps = [round(chosen.threshold + step / 100, 3) for step in range(-4, 5)]
    return CalibrationResult(
        provider=active.provider,
        model=active.model,
        sample=len(exchanges),
        chosen=chosen,
        before=_threshold_stats(level.similarity, answered, unanswered),
        table=[_threshold_stats(step, answered, unanswered) for step in steps],
    )


def save_threshold(fitted: CalibrationResult) -> None:
    """Use the fitted threshold, in place of an earlier one of the same model."""
    Calibration.objects.update_or_create(
        provider=fitted.provider,
        model=fitted.model,
        defaults={"threshold": fitted.chosen.threshold, "sample": fitted.sample},
    )


def reset_threshold() -> bool:
    """Use the shipped threshold of the active model; return False if none was fitted."""
    active = generations.active_generation()
    return bool(Calibration.objects.filter(provider=active.provider, model=active.model).delete()[0])


def current_threshold() -> CurrentThreshold:
    """Return the minimum similarity of a relevant result."""
    conf = settings.CATO.vector_store
    if conf.similarity_threshold is not None:
        return CurrentThreshold(float(conf.similarity_threshold), "set")
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    fitted = Calibration.objects.filter(provider=active.provider, model=active.model).first()
    if fitted is None:
        return CurrentThreshold(level.similarity, "shipped")
    return CurrentThreshold(level.similarity, "fitted", fitted.at, fitted.sample)


def choose_threshold(answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    """Return the threshold that passes MIN_PASSED of the answered and rejects MIN_REJECTED of the unanswered.

    The arguments are the best similarity for each question. Among several thresholds, or if none does both, the one
    with the best balanced accuracy (the mean of both shares) is returned.
    """
    values = sorted({*answered, *unanswered})
    thresholds = [values[0], *(round((low + high) / 2, 4) for low, high in pairwise(values))]
    rows = [_threshold_stats(threshold, answered, unanswered) for threshold in thresholds]
    sufficient = [row for row in rows if row.passed >= MIN_PASSED and row.rejected >= MIN_REJECTED]
    return max(sufficient or rows, key=lambda row: row.passed + row.rejected)


def question_text(exchange: Exchange) -> str:
    """Return the second half of the message's longest sentence, or ""."""
    text = exchange.user_message[:_MAX_CHARS]
    longest = max((text[s.start : s.end] for s in sentences(text, 0, len(text))), key=len, default="")
    words = longest.split()
    return " ".join(words[len(words) // 2 :]) if len(words) > 1 else longest[len(longest) // 2 :]


def _threshold_stats(threshold: float, answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    passed = sum(similarity >= threshold for similarity in answered) / len(answered)
    rejected = sum(similarity < threshold for similarity in unanswered) / len(unanswered)
    return ThresholdStats(threshold, passed, rejected)


def _neighbours(exchange: Exchange) -> set[uuid.UUID]:
    """Return the ids of the other exchanges of the session, or of the adjacent chunks."""
    is_neighbour = Q(previous=exchange) | Q(id=exchange.previous_id)
    if exchange.session_id is not None:
        is_neighbour |= Q(session_id=exchange.session_id)
    rows = Exchange.objects.filter(is_neighbour, forgotten_at=None).exclude(id=exchange.id)
    return set(rows.values_list("id", flat=True)[:_MAX_NEIGHBOURS])


def _best_similarity(text: str, spaces: SpaceIds, exclude: Iterable[uuid.UUID]) -> float:
    """Return the similarity of the nearest exchange."""
    active = generations.active_generation()
    vector = cache.embed_query(generations.embedder_for(active), text, keep=False)
    query = Query(
        text=text,
        get_vector=lambda: vector,
        generation=active,
        spaces=spaces,
        limit=_LIMIT,
        now=timezone.now(),
        exclude=frozenset(exclude),
    )
    pool = gather_candidates(query)
    if pool.is_lexical_only:
        raise VectorStoreUnavailableError(
            "The vector store or the embedding model does not answer. Calibrate again when both answer."
        )
    return max(pool.similarities, default=0.0)

"""Fit the relevance threshold on the stored exchanges, for the active embedding model.

A question with an answer is the second half of a sentence of an exchange that is excluded from the search. Its
neighbours are the answer, about as near as an answer is to a rephrased question. If its own exchange were included, the
search would find the same words, and a gate fitted on that rejected two thirds and more of real questions when
measured. Questions without an answer are the same question with its whole session excluded, and small talk.
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
from memory.retrieval import gate, levels
from memory.retrieval.candidates import gather_candidates
from memory.retrieval.tuning.sampling import sample_exchanges
from memory.retrieval.types import Query
from memory.spaces import access as who
from memory.spaces.access import SpaceIds

SAMPLE = 200
MIN_EXCHANGES = 30
KEEP, SILENCE = 0.85, 0.90

SMALL_TALK = (
    "Hi there", "Good morning!", "How are you today?", "Thanks a lot", "Thank you, that helped", "Okay", "Perfect, go on",
    "See you tomorrow", "Never mind", "Tell me a joke", "What can you do?", "Who are you?", "Say that again, please",
    "Shorter, please", "Translate that into French", "Write a limerick about rain", "What is 17 times 23?",
    "Hallo!", "Guten Morgen", "Danke dir", "Alles klar", "Bis morgen", "Bonjour", "Merci beaucoup", "Hola", "Muchas gracias",
)  # fmt: skip

_READ = 2000
_MAX_NEIGHBOURS = 1000
_WANTED = 5


@dataclass(frozen=True, slots=True)
class ThresholdStats:
    """The effect of a threshold: the shares of answered questions it passes, and of unanswered ones it rejects."""

    level: float
    keeps: float
    silences: float


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The chosen and the previous threshold with their effects, and others around them for a table."""

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

    Raises InvalidInputError if the index has fewer than LEAST exchanges, or fewer than LEAST with neighbours, and
    VectorStoreUnavailableError.
    """
    exchanges = sample_exchanges(SAMPLE, spaces)
    if len(exchanges) < MIN_EXCHANGES:
        raise InvalidInputError(
            f"There are {len(exchanges)} exchanges in the index; a level can be fitted from {MIN_EXCHANGES} on."
        )
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    answered: list[float] = []
    unanswered: list[float] = []
    for exchange in exchanges:
        text = probe_text(exchange)
        readable = who.readable_space_ids(exchange.owner_id) if spaces is None else spaces
        neighbours = _neighbours(exchange)
        if not text:
            continue
        if neighbours:
            answered.append(_evidence(text, readable, {exchange.id}, level))
        unanswered.append(_evidence(text, readable, {exchange.id, *neighbours}, level))
    if len(answered) < MIN_EXCHANGES:
        raise InvalidInputError(
            f"Of {len(exchanges)} exchanges drawn, {len(answered)} have others said beside them that could answer; "
            f"a level can be fitted from {MIN_EXCHANGES} on."
        )
    readable = who.readable_space_ids(exchanges[0].owner_id) if spaces is None else spaces
    unanswered += [_evidence(text, readable, set(), level) for text in SMALL_TALK]
    chosen = best_level(answered, unanswered)
    steps = [round(chosen.level + step / 20, 3) for step in range(-4, 5)]
    return CalibrationResult(
        provider=active.provider,
        model=active.model,
        sample=len(exchanges),
        chosen=chosen,
        before=_row(level.evidence, answered, unanswered),
        table=[_row(step, answered, unanswered) for step in steps],
    )


def save_threshold(found: CalibrationResult) -> Calibration:
    """Use the fitted threshold, in place of an earlier one of the same model."""
    return Calibration.objects.update_or_create(
        provider=found.provider,
        model=found.model,
        defaults={"threshold": found.chosen.level, "sample": found.sample},
    )[0]


def reset_threshold() -> bool:
    """Use the shipped threshold of the active model; return False if none was fitted."""
    active = generations.active_generation()
    return bool(Calibration.objects.filter(provider=active.provider, model=active.model).delete()[0])


def current_threshold() -> CurrentThreshold:
    """Return the threshold of the configured strategy, without adjustments per query."""
    conf = settings.CATO.vector_store
    if conf.similarity_threshold is not None:
        return CurrentThreshold(float(conf.similarity_threshold), "set")
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    if conf.retrieval_strategy == "default":  # it compares each hit's similarity with a threshold that is not fitted
        return CurrentThreshold(level.similarity, "shipped")
    fitted = Calibration.objects.filter(provider=active.provider, model=active.model).first()
    if fitted is None:
        return CurrentThreshold(level.evidence, "shipped")
    return CurrentThreshold(level.evidence, "fitted", fitted.at, fitted.sample)


def best_level(answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    """Return the threshold that passes at least KEEP of the answered and rejects SILENCE of the unanswered.

    Among several, and if none does, the one with the best balanced accuracy (the mean of both shares) is returned.
    """
    strengths = sorted({*answered, *unanswered})
    levels = [strengths[0], *(round((low + high) / 2, 4) for low, high in pairwise(strengths))]
    rows = [_row(level, answered, unanswered) for level in levels]
    good = [row for row in rows if row.keeps >= KEEP and row.silences >= SILENCE]
    return max(good or rows, key=lambda row: row.keeps + row.silences)


def probe_text(exchange: Exchange) -> str:
    """Return the second half of the message's longest sentence, or ""."""
    text = exchange.user_message[:_READ]
    longest = max((text[s.start : s.end] for s in sentences(text, 0, len(text))), key=len, default="")
    words = longest.split()
    return " ".join(words[len(words) // 2 :]) if len(words) > 1 else longest[len(longest) // 2 :]


def _row(level: float, answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    keeps = sum(strength >= level for strength in answered) / len(answered)
    silences = sum(strength < level for strength in unanswered) / len(unanswered)
    return ThresholdStats(level, keeps, silences)


def _neighbours(exchange: Exchange) -> set[uuid.UUID]:
    """Return the exchanges of the same session, or the neighbouring chunks."""
    same = Q(previous=exchange) | Q(id=exchange.previous_id)
    if exchange.session_id is not None:
        same |= Q(session_id=exchange.session_id)
    rows = Exchange.objects.filter(same, forgotten_at=None).exclude(id=exchange.id)
    return set(rows.values_list("id", flat=True)[:_MAX_NEIGHBOURS])


def _evidence(text: str, spaces: SpaceIds, exclude: Iterable[uuid.UUID], level: levels.Level) -> float:
    """Return the evidence score of the gate, without the part of shared names."""
    active = generations.active_generation()
    vector = cache.embed_query(generations.embedder_for(active), text, keep=False)
    query = Query(
        text=text,
        get_vector=lambda: vector,
        generation=active,
        spaces=spaces,
        limit=_WANTED,
        now=timezone.now(),
        exclude=frozenset(exclude),
    )
    pool = gather_candidates(query)
    if pool.is_lexical_only:
        raise VectorStoreUnavailableError("The index does not answer; a level cannot be fitted now.")
    return gate.evidence(text, pool.similarities, level)

"""Where the gate should lie on this store: fitted on what is stored, for the embedding model that serves.

A question that has an answer here is half a sentence of an exchange that is itself left out: what was said beside it
is the answer, about as near as an answer is to a question in other words. Asked with its own exchange in place it would
find its very words, and a gate fitted on that shut out two thirds and more of real questions where it was measured. The
same question with its whole session left out, and small talk, have none.
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
LEAST = 30
KEEP, SILENCE = 0.85, 0.90

SMALL_TALK = (
    "Hi there", "Good morning!", "How are you today?", "Thanks a lot", "Thank you, that helped", "Okay", "Perfect, go on",
    "See you tomorrow", "Never mind", "Tell me a joke", "What can you do?", "Who are you?", "Say that again, please",
    "Shorter, please", "Translate that into French", "Write a limerick about rain", "What is 17 times 23?",
    "Hallo!", "Guten Morgen", "Danke dir", "Alles klar", "Bis morgen", "Bonjour", "Merci beaucoup", "Hola", "Muchas gracias",
)  # fmt: skip

_READ = 2000
_MOST_BESIDE = 1000
_WANTED = 5


@dataclass(frozen=True, slots=True)
class ThresholdStats:
    """What a level would do: the shares of questions with an answer it keeps, and of those without it silences."""

    level: float
    keeps: float
    silences: float


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The level chosen and the one in force before, what both would do, and levels around for a table."""

    provider: str
    model: str
    sample: int
    chosen: ThresholdStats
    before: ThresholdStats
    table: Sequence[ThresholdStats]


@dataclass(frozen=True, slots=True)
class CurrentThreshold:
    """The gate as it is: its level, and where it comes from: "set", "fitted" (`at`, on `sample` exchanges), "shipped"."""

    level: float
    origin: str
    at: datetime | None = None
    sample: int = 0


def fit_threshold(spaces: SpaceIds | None = None) -> CalibrationResult:
    """Fit the level on at most SAMPLE exchanges of `spaces` (None: all, each asked for as its owner would); keeps nothing.

    Raises InvalidInputError where fewer than LEAST exchanges, or fewer that have others beside them, are in the index; VectorStoreUnavailableError.
    """
    exchanges = sample_exchanges(SAMPLE, spaces)
    if len(exchanges) < LEAST:
        raise InvalidInputError(
            f"There are {len(exchanges)} exchanges in the index; a level can be fitted from {LEAST} on."
        )
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    answered: list[float] = []
    unanswered: list[float] = []
    for exchange in exchanges:
        text = probe_text(exchange)
        readable = who.readable_space_ids(exchange.owner_id) if spaces is None else spaces
        beside = _beside(exchange)
        if not text:
            continue
        if beside:
            answered.append(_evidence(text, readable, {exchange.id}, level))
        unanswered.append(_evidence(text, readable, {exchange.id, *beside}, level))
    if len(answered) < LEAST:
        raise InvalidInputError(
            f"Of {len(exchanges)} exchanges drawn, {len(answered)} have others said beside them that could answer; "
            f"a level can be fitted from {LEAST} on."
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
    """Let the gate lie where it was fitted, in place of an earlier fit of the same model."""
    return Calibration.objects.update_or_create(
        provider=found.provider,
        model=found.model,
        defaults={"threshold": found.chosen.level, "sample": found.sample},
    )[0]


def reset_threshold() -> bool:
    """Go back to the shipped level of the model that serves; False where nothing was fitted."""
    active = generations.active_generation()
    return bool(Calibration.objects.filter(provider=active.provider, model=active.model).delete()[0])


def current_threshold() -> CurrentThreshold:
    """The level that a question is held against now, by the configured strategy; a rising one is told elsewhere."""
    conf = settings.CATO.vector_store
    if conf.similarity_threshold is not None:
        return CurrentThreshold(float(conf.similarity_threshold), "set")
    active = generations.active_generation()
    level = levels.level_of(active.provider, active.model)
    if conf.retrieval_strategy == "default":  # it holds each result's own similarity against a level that is not fitted
        return CurrentThreshold(level.similarity, "shipped")
    fitted = Calibration.objects.filter(provider=active.provider, model=active.model).first()
    if fitted is None:
        return CurrentThreshold(level.evidence, "shipped")
    return CurrentThreshold(level.evidence, "fitted", fitted.at, fitted.sample)


def best_level(answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    """The level that keeps at least KEEP of the one and silences SILENCE of the other; else the best balanced accuracy.

    Where several do, the one with the best balanced accuracy, the mean of both shares.
    """
    strengths = sorted({*answered, *unanswered})
    levels = [strengths[0], *(round((low + high) / 2, 4) for low, high in pairwise(strengths))]
    rows = [_row(level, answered, unanswered) for level in levels]
    good = [row for row in rows if row.keeps >= KEEP and row.silences >= SILENCE]
    return max(good or rows, key=lambda row: row.keeps + row.silences)


def probe_text(exchange: Exchange) -> str:
    """The second half of the longest sentence of what was asked; "" where there is none."""
    text = exchange.user_message[:_READ]
    longest = max((text[s.start : s.end] for s in sentences(text, 0, len(text))), key=len, default="")
    words = longest.split()
    return " ".join(words[len(words) // 2 :]) if len(words) > 1 else longest[len(longest) // 2 :]


def _row(level: float, answered: Sequence[float], unanswered: Sequence[float]) -> ThresholdStats:
    keeps = sum(strength >= level for strength in answered) / len(answered)
    silences = sum(strength < level for strength in unanswered) / len(unanswered)
    return ThresholdStats(level, keeps, silences)


def _beside(exchange: Exchange) -> set[uuid.UUID]:
    """What was said in the same session, or is the piece before or after of the same text."""
    same = Q(previous=exchange) | Q(id=exchange.previous_id)
    if exchange.session_id is not None:
        same |= Q(session_id=exchange.session_id)
    rows = Exchange.objects.filter(same, forgotten_at=None).exclude(id=exchange.id)
    return set(rows.values_list("id", flat=True)[:_MOST_BESIDE])


def _evidence(text: str, spaces: SpaceIds, exclude: Iterable[uuid.UUID], level: levels.Level) -> float:
    """The evidence that the gate holds against its level; what shared names may add is left to the gate."""
    active = generations.active_generation()
    vector = cache.embed_query(generations.embedder_for(active), text, keep=False)
    query = Query(
        text=text,
        embedded=lambda: vector,
        generation=active,
        spaces=spaces,
        wanted=_WANTED,
        now=timezone.now(),
        exclude=frozenset(exclude),
    )
    pool = gather_candidates(query)
    if pool.by_words_alone:
        raise VectorStoreUnavailableError("The index does not answer; a level cannot be fitted now.")
    return gate.evidence(text, pool.similarities, level)

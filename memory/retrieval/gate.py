"""The relevance gate: whether what was found is worth recalling, decided once for a question.

A cosine alone says little: it drifts with the model, the size and the kind of the store. So the best hit's cosine is
taken together with its margin over those of ranks 5 to 20, which are what any question would find here. A store too
small to have them is filled up with what two unrelated texts have. A threshold that the user sets, and the rising one,
are held against each result's own similarity instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings

from memory import generations
from memory.models import Calibration
from memory.retrieval.candidates import Candidate, Pool
from memory.retrieval.results import Query


@dataclass(frozen=True, slots=True)
class Level:
    """What one embedding model calls relevant.

    `evidence` is what cosine plus margin must reach, `similarity` what a single cosine must for the strategies that
    ask each result, `unrelated` the cosine of two texts that have nothing to do with each other.
    """

    evidence: float
    similarity: float
    unrelated: float


# The local model's were measured (docs/retrieval.md); the others' come from what is published about how their cosines
# spread, and `calibrate` replaces them.
LEVELS = {
    "all-MiniLM-L6-v2": Level(evidence=0.55, similarity=0.26, unrelated=0.03),
    "text-embedding-3-small": Level(evidence=0.50, similarity=0.30, unrelated=0.15),
    "nomic-embed-text": Level(evidence=0.75, similarity=0.60, unrelated=0.45),
}
_UNKNOWN = LEVELS["all-MiniLM-L6-v2"]
_BACKGROUND = slice(4, 20)
# What a name or a number that question and exchange share adds, as far as it is what the question is about: it says what
# a cosine cannot, while other shared words say little.
_NAMES = 0.4
# Where there is no cosine, the words must say about so much of what they could say.
_WORDS_ALONE = 0.4


def level_of(provider: str, model: str) -> Level:
    """The level of this model: fitted on this store where `calibrate` ran, else the shipped one."""
    shipped = LEVELS.get(model, _UNKNOWN)
    fitted = Calibration.objects.filter(provider=provider, model=model).first()
    return shipped if fitted is None else Level(fitted.threshold, shipped.similarity, shipped.unrelated)


def evidence(similarities: Sequence[float], unrelated: float) -> float:
    """The best cosine plus its margin over ranks 5 to 20 of `similarities` (highest first)."""
    if not similarities:
        return 0.0
    filled = [*similarities[:20], *[unrelated] * (20 - len(similarities))]
    others = filled[_BACKGROUND]
    return 2 * filled[0] - sum(others) / len(others)


def is_below(query: Query, pool: Pool, *, rising: bool = False, each: bool = False) -> Callable[[Candidate], bool]:
    """The gate for one question: says of each candidate whether it should not come back by itself.

    `rising`: by the threshold that rises with the conversation. `each`: by the fixed one of the model.
    """
    if pool.by_words_alone:
        # There is no cosine to hold against any threshold, whatever the strategy.
        says_little = max((c.words for c in pool.candidates), default=0.0) < _WORDS_ALONE
        return lambda candidate: says_little
    conf = settings.CATO.vector_store
    if rising or conf.dynamic_threshold:
        return _below(rising_threshold(query))
    if conf.similarity_threshold is not None:
        return _below(float(conf.similarity_threshold))
    serving = generations.serving()
    level = level_of(serving.provider, serving.model)
    if each:
        return _below(level.similarity)
    silent = evidence(pool.similarities, level.unrelated) + _NAMES * _names_shared(pool) < level.evidence
    return lambda candidate: silent


def _names_shared(pool: Pool) -> float:
    """The most that a candidate shares of the names and numbers asked for, as their share of all that is asked."""
    asked = pool.question.asked
    begins = pool.query.text.lstrip()
    weights = [ask.idf * _is_name(ask.word, is_first=begins.startswith(ask.word)) for ask in asked]
    possible = sum(ask.idf for ask in asked)
    if not any(weights) or not pool.candidates:
        return 0.0
    shared = (pool.held[: len(pool.candidates)] > 0) @ np.array(weights)
    return float(shared.max()) / possible


def _is_name(word: str, *, is_first: bool) -> bool:
    return any(char.isdigit() for char in word) or (word[:1].isupper() and not is_first)


def rising_threshold(query: Query) -> float:
    """A threshold rising linearly with the conversation's messages, between its two configured ends."""
    conf = settings.CATO.vector_store
    share = min(1.0, query.conversation_length / conf.dynamic_threshold_full_at)
    return float(conf.dynamic_threshold_min + share * (conf.dynamic_threshold_max - conf.dynamic_threshold_min))


def _below(threshold: float) -> Callable[[Candidate], bool]:
    return lambda candidate: candidate.similarity is None or candidate.similarity < threshold

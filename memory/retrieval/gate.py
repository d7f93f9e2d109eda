"""The relevance gate: whether what was found is worth recalling, decided once for a question.

A cosine alone says little: it drifts with the model, the size and the kind of the store. So the best hit's cosine is
taken together with its margin over those of ranks 21 to 60, which are what any question would find here; those before
them may belong to the answer. A store too small to have them is filled up with what two unrelated texts have. Names that
the question asks for count too: for it where an exchange has them, against it where none has. A threshold that the user
sets, and the rising one, are held against each result's own similarity instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from django.conf import settings

from memory.lexical.analyser import detect_language
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.levels import Level, level_of
from memory.retrieval.types import Query

_BACKGROUND = slice(20, 60)
# What names and numbers that question and exchange share add, and those that no exchange has take away, as far as they are
# what the question is about: they say what a cosine cannot, while other shared words say little.
_NAMES = 0.9
# In German every noun has a capital, so that a capital says half as much.
_NAMES_IN_GERMAN = 0.45
# A word with a capital that begins a sentence need not be a name.
_BEGINNING = re.compile(r"(?:^|[.!?…:\n])\W*([^\W_]+)")
# What shares no word and comes less than so far from unrelated to relevant is not recalled beside what is.
_HARDLY = 0.65
# Where there is no cosine, the words must say about so much of what they could say.
_WORDS_ALONE = 0.4


def evidence(question: str, similarities: Sequence[float], level: Level) -> float:
    """The best cosine plus its margin over ranks 21 to 60 of `similarities` (highest first), less what is foreign."""
    if not similarities:
        return 0.0
    filled = [*similarities[: _BACKGROUND.stop], *[level.unrelated] * (_BACKGROUND.stop - len(similarities))]
    others = filled[_BACKGROUND]
    foreign = level.foreign if detect_language(question) != "english" else 0.0
    return 2 * filled[0] - sum(others) / len(others) - foreign


def relevance_filter(
    query: Query, pool: CandidatePool, *, rising: bool = False, each: bool = False
) -> Callable[[Candidate], bool]:
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
    level = level_of(query.generation.provider, query.generation.model)
    if each:
        return _below(level.similarity)
    # Small words alone ("and when was that?") ask for nothing by themselves.
    asks = bool(pool.question.asked)
    silent = not asks or evidence(query.text, pool.similarities, level) + _name_evidence(pool) < level.evidence
    return lambda candidate: silent or _is_chance_hit(candidate, level)


def _is_chance_hit(candidate: Candidate, level: Level) -> bool:
    """Whether it shares no word and is hardly similar by itself either: where little is kept, something must come next."""
    if candidate.is_pinned or candidate.similarity is None or candidate.words:
        return False
    return candidate.similarity < level.unrelated + _HARDLY * (level.similarity - level.unrelated)


def _name_evidence(pool: CandidatePool) -> float:
    """What the names and numbers asked for say: the most that a candidate holds of them, less what it lacks.

    One that no candidate holds weighs as if nobody had said it, however often others say it in spaces of their own.
    """
    asked = pool.question.asked
    beginnings = frozenset(_BEGINNING.findall(pool.query.text))
    is_name = np.array([_is_name(ask.word, beginnings) for ask in asked], dtype=bool)
    if not is_name.any() or not pool.candidates:
        return 0.0
    held = pool.held[: len(pool.candidates)] > 0
    said = np.array([ask.idf for ask in asked])
    weights = np.where(is_name & ~held.any(axis=0), pool.question.unheard, said)
    names = weights * is_name
    weight = _NAMES_IN_GERMAN if detect_language(pool.query.text) == "german" else _NAMES
    return weight * float(2 * (held @ names).max() - names.sum()) / float(weights.sum())


def _is_name(word: str, beginnings: frozenset[str]) -> bool:
    return any(char.isdigit() for char in word) or (word[:1].isupper() and word not in beginnings)


def rising_threshold(query: Query) -> float:
    """A threshold rising linearly with the conversation's messages, between its two configured ends."""
    conf = settings.CATO.vector_store
    share = min(1.0, query.conversation_length / conf.dynamic_threshold_full_at)
    return float(conf.dynamic_threshold_min + share * (conf.dynamic_threshold_max - conf.dynamic_threshold_min))


def _below(threshold: float) -> Callable[[Candidate], bool]:
    return lambda candidate: candidate.similarity is None or candidate.similarity < threshold

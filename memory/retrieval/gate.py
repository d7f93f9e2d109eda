"""The relevance gate decides once per query whether the results are relevant enough to recall.

A cosine alone is not comparable between models, store sizes and kinds of content. The gate therefore adds the margin of
the best cosine over the mean of ranks 21 to 60. Those ranks approximate what any query would find; earlier ranks may
belong to the answer. If a store is too small to have them, the model's cosine for unrelated texts fills the gap.

Names in the query raise the evidence if an exchange contains them and lower it if none does. A threshold set by the
user, or the rising threshold, is compared with each hit's own similarity instead.
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
# Weight of names and numbers: they add evidence if a candidate contains them, and reduce it if none does. The effect is
# proportional to their share of the query. They carry information that a cosine does not, while other shared terms
# carry little.
_NAMES = 0.9
# German capitalises every noun, so a capital is half as informative.
_NAMES_IN_GERMAN = 0.45
# A capitalised word at the start of a sentence need not be a name.
_BEGINNING = re.compile(r"(?:^|[.!?…:\n])\W*([^\W_]+)")
# A candidate without a shared term is dropped if its similarity is less than this share of the way from unrelated to
# relevant.
_HARDLY = 0.65
# Minimum lexical score if the index could not be queried.
_WORDS_ALONE = 0.4


def evidence(question: str, similarities: Sequence[float], level: Level) -> float:
    """Return the best comparable cosine plus its margin over the mean of ranks 21 to 60, reduced for foreign languages.

    `similarities` are cosines, sorted, highest first. The reduction is `level.foreign` for queries that are not in English.
    """
    if not similarities:
        return 0.0
    filled = [*similarities[: _BACKGROUND.stop], *[level.unrelated] * (_BACKGROUND.stop - len(similarities))]
    others = [level.comparable(cosine) for cosine in filled[_BACKGROUND]]
    foreign = level.foreign if detect_language(question) != "english" else 0.0
    return 2 * level.comparable(filled[0]) - sum(others) / len(others) - foreign


def relevance_filter(
    query: Query, pool: CandidatePool, *, rising: bool = False, each: bool = False
) -> Callable[[Candidate], bool]:
    """Return the gate for one query: a function that is True for candidates below the gate.

    `rising` uses the threshold that rises with the conversation. `each` compares each candidate with the model's fixed
    one.
    """
    if pool.is_lexical_only:
        # Without cosines no threshold applies, whatever the strategy.
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
    # A query of stop words only ("and when was that?") has no terms and recalls nothing.
    asks = bool(pool.question.asked)
    silent = not asks or evidence(query.text, pool.similarities, level) + _name_evidence(pool) < level.evidence
    return lambda candidate: silent or _is_chance_hit(candidate, level)


def _is_chance_hit(candidate: Candidate, level: Level) -> bool:
    """Return True if the candidate shares no term with the query and is hardly similar.

    In a small store such a candidate can rank high only for lack of others.
    """
    if candidate.is_pinned or candidate.similarity is None or candidate.words:
        return False
    return candidate.similarity < level.unrelated + _HARDLY * (level.similarity - level.unrelated)


def _name_evidence(pool: CandidatePool) -> float:
    """Return the evidence from names and numbers in the query: the best coverage by one candidate, less what it lacks.

    A name that no candidate contains gets the weight of an unknown term, even if it is common in other spaces.
    Otherwise the weight would reveal that it occurs there.
    """
    asked = pool.question.asked
    beginnings = frozenset(_BEGINNING.findall(pool.query.text))
    is_name = np.array([_is_name(ask.word, beginnings) for ask in asked], dtype=bool)
    if not is_name.any() or not pool.candidates:
        return 0.0
    held = pool.held[: len(pool.candidates)] > 0
    said = np.array([ask.idf for ask in asked])
    weights = np.where(is_name & ~held.any(axis=0), pool.question.unseen_idf, said)
    names = weights * is_name
    weight = _NAMES_IN_GERMAN if detect_language(pool.query.text) == "german" else _NAMES
    return weight * float(2 * (held @ names).max() - names.sum()) / float(weights.sum())


def _is_name(word: str, beginnings: frozenset[str]) -> bool:
    return any(char.isdigit() for char in word) or (word[:1].isupper() and word not in beginnings)


def rising_threshold(query: Query) -> float:
    """Return a threshold that rises linearly with the number of messages, between the two configured limits."""
    conf = settings.CATO.vector_store
    share = min(1.0, query.conversation_length / conf.dynamic_threshold_full_at)
    return float(conf.dynamic_threshold_min + share * (conf.dynamic_threshold_max - conf.dynamic_threshold_min))


def _below(threshold: float) -> Callable[[Candidate], bool]:
    return lambda candidate: candidate.similarity is None or candidate.similarity < threshold

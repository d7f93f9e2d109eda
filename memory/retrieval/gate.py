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

# Ranks 21 to 60.
_BACKGROUND = slice(20, 60)
# Weight of names and numbers: they add evidence if a candidate contains them, and reduce it if none does. The effect is
# proportional to their share of the query. They carry information that a cosine does not, while other shared terms
# carry little.
_NAME_WEIGHT = 0.9
# German capitalises every noun, so a capital is half as informative.
_NAME_WEIGHT_IN_GERMAN = 0.45
# A capitalised word at the start of a sentence need not be a name.
_SENTENCE_START = re.compile(r"(?:^|[.!?…:\n])\W*([^\W_]+)")
# A candidate without a shared term is dropped if its similarity is less than this share of the way from unrelated to
# relevant.
_MIN_SIMILARITY_SHARE = 0.65
# Minimum lexical score, from 0 to 1, if the index could not be queried.
_MIN_LEXICAL_SCORE = 0.4


def evidence(text: str, similarities: Sequence[float], level: Level) -> float:
    """Return the best comparable cosine plus its margin over the mean of ranks 21 to 60, reduced for foreign languages.

    `text` is the query and `similarities` are cosines, highest first. The reduction is `level.foreign` for queries that
    are not in English.
    """
    if not similarities:
        return 0.0
    cosines = [*similarities[: _BACKGROUND.stop], *[level.unrelated] * (_BACKGROUND.stop - len(similarities))]
    background = [level.comparable(cosine) for cosine in cosines[_BACKGROUND]]
    foreign = level.foreign if detect_language(text) != "english" else 0.0
    return 2 * level.comparable(cosines[0]) - sum(background) / len(background) - foreign


def relevance_filter(
    query: Query, pool: CandidatePool, *, rising: bool = False, each: bool = False
) -> Callable[[Candidate], bool]:
    """Return the gate for one query: a function that is True for candidates below the gate.

    `rising` uses the threshold that rises with the conversation. `each` compares each candidate with the model's fixed
    one.
    """
    if pool.is_lexical_only:
        # Without cosines no threshold applies, whatever the strategy.
        is_too_low = max((c.lexical_score for c in pool.candidates), default=0.0) < _MIN_LEXICAL_SCORE
        return lambda candidate: is_too_low
    conf = settings.CATO.vector_store
    if rising or conf.dynamic_threshold:
        return _below(rising_threshold(query))
    if conf.similarity_threshold is not None:
        return _below(float(conf.similarity_threshold))
    level = level_of(query.generation.provider, query.generation.model)
    if each:
        return _below(level.similarity)
    # A query of stop words only ("and when was that?") has no terms and recalls nothing.
    has_terms = bool(pool.lexical_query.terms)
    is_below = not has_terms or evidence(query.text, pool.similarities, level) + _name_evidence(pool) < level.evidence
    return lambda candidate: is_below or _is_chance_hit(candidate, level)


def _is_chance_hit(candidate: Candidate, level: Level) -> bool:
    """Return True if the candidate shares no term with the query and is hardly similar.

    In a small store such a candidate can rank high only for lack of others.
    """
    if candidate.is_pinned or candidate.similarity is None or candidate.lexical_score:
        return False
    return candidate.similarity < level.unrelated + _MIN_SIMILARITY_SHARE * (level.similarity - level.unrelated)


def _name_evidence(pool: CandidatePool) -> float:
    """Return the evidence from names and numbers in the query: the best coverage by one candidate, less what it lacks.

    A name that no candidate contains gets the weight of an unknown term, even if it is common in other spaces.
    Otherwise the weight would reveal that it occurs there.
    """
    query_terms = pool.lexical_query.terms
    sentence_starts = frozenset(_SENTENCE_START.findall(pool.query.text))
    is_name = np.array([_is_name(query_term.word, sentence_starts) for query_term in query_terms], dtype=bool)
    if not is_name.any() or not pool.candidates:
        return 0.0
    contains = pool.term_frequencies[: len(pool.candidates)] > 0
    idfs = np.array([query_term.idf for query_term in query_terms])
    weights = np.where(is_name & ~contains.any(axis=0), pool.lexical_query.unseen_idf, idfs)
    name_weights = weights * is_name
    factor = _NAME_WEIGHT_IN_GERMAN if detect_language(pool.query.text) == "german" else _NAME_WEIGHT
    return factor * float(2 * (contains @ name_weights).max() - name_weights.sum()) / float(weights.sum())


def _is_name(word: str, sentence_starts: frozenset[str]) -> bool:
    return any(char.isdigit() for char in word) or (word[:1].isupper() and word not in sentence_starts)


def rising_threshold(query: Query) -> float:
    """Return a threshold that rises linearly with the number of messages, between the two configured limits."""
    conf = settings.CATO.vector_store
    share = min(1.0, query.conversation_length / conf.dynamic_threshold_full_at)
    return float(conf.dynamic_threshold_min + share * (conf.dynamic_threshold_max - conf.dynamic_threshold_min))


def _below(threshold: float) -> Callable[[Candidate], bool]:
    """Return a gate that compares each candidate's own similarity with the threshold."""
    return lambda candidate: candidate.similarity is None or candidate.similarity < threshold

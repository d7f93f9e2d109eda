"""The relevance gate decides which results are recalled.

First, whether the message wants memory at all. A probe reads that from its vector, so small talk and general tasks
recall nothing in any language, however much is stored. Names in the message raise the evidence if an exchange contains
them and lower it if none does: "who painted Guernica?" is a general question unless somebody here wrote about it. A
statement on the same subject with words of the message does so, too.

Then, whether each result is relevant, by itself and compared with the best one. A threshold set by the
user, or the rising threshold, is compared with the result's own similarity.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from django.conf import settings

from memory.lexical.analyser import detect_language
from memory.models import Statement
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.levels import Level, configured_level, level_of
from memory.retrieval.probes import MessageTraits
from memory.retrieval.types import Query

# Minimum evidence: the probability that the message wants memory, plus that of its names. A follow-up names its subject in
# the previous messages, so less is needed. Chosen to pass .98 of the questions; docs/retrieval.md has the figures.
_MIN_EVIDENCE, _MIN_FOLLOW_UP_EVIDENCE = 0.44, 0.36
# Minimum if a statement is on the subject of the message and shares words with it, by this lexical score: what was written
# down as knowledge is no general question.
_MIN_EVIDENCE_FOR_STATEMENT, _MIN_STATEMENT_SCORE = 0.25, 0.2
# Probabilities from which a message is a follow-up if there are previous messages, and from which it cannot be understood
# without them. Complete questions hardly ever reach the second.
_MIN_FOLLOW_UP, _MIN_INCOMPLETE = 0.3, 0.6
# Weight of names and numbers. The effect is proportional to their share of the query.
_NAME_WEIGHT = 0.45
# German capitalises every noun, so a capital is half as informative.
_NAME_WEIGHT_IN_GERMAN = 0.22
# A query of at most this many words has no form of a question or task by which to tell what it wants. So a rare word that
# an exchange contains counts as a name.
_MAX_KEYWORDS = 5
_WORD, _SENTENCE_END = re.compile(r"[^\W_]+"), re.compile(r"[.!?…:\n]")
# A candidate without a shared term that counts is dropped if its similarity is unknown, or less than this share of the way
# from unrelated to relevant.
_MIN_SIMILARITY_SHARE = 0.65
# Results below this share of the best score are not recalled: they are beside the point. At .6 answers begin to be lost.
_MIN_SCORE_SHARE = 0.55
# Lexical score from which an exchange has nearly all words of the query.
_REPEATED_QUESTION = 0.65
# Minimum lexical score, from 0 to 1, if the message has no vector or its model no probes.
_MIN_LEXICAL_SCORE = 0.4


def relevance_filter(
    query: Query, pool: CandidatePool, *, rising: bool = False, each: bool = False
) -> Callable[[Candidate], bool]:
    """Return the gate for one query: a function that is True for candidates below the gate.

    `rising` uses the threshold that rises with the conversation. `each` compares each candidate with the model's fixed
    one.
    """
    traits = query.traits
    if traits is not None and not pool.is_lexical_only and not _wants_memory(query, pool, traits):
        return lambda candidate: True
    conf = settings.CATO.vector_store
    threshold = None if conf.similarity_threshold is None else float(conf.similarity_threshold)
    if rising or conf.dynamic_threshold:
        threshold = rising_threshold(query)
    elif each and threshold is None:
        threshold = level_of(query.generation.provider, query.generation.model).similarity
    if threshold is not None and not pool.is_lexical_only:
        return _below(threshold)
    if traits is None or pool.is_lexical_only:
        # Shared terms decide, in any language. Without cosines no other threshold applies, whatever the strategy.
        is_too_low = max((c.lexical_score for c in pool.candidates), default=0.0) < _MIN_LEXICAL_SCORE
        return lambda candidate: is_too_low
    level = configured_level(query.generation.model)
    return lambda candidate: _is_chance_hit(candidate, level)


def without_tail(
    candidates: Sequence[Candidate],
    related: Mapping[str, frozenset[uuid.UUID]],
    is_below: Callable[[Candidate], bool],
    *,
    repeated: Collection[str] = (),
) -> Callable[[Candidate], bool]:
    """Return the gate `is_below` that also drops candidates whose score is far below the best one that passes.

    Pinned exchanges remain, and so do those that are `related` to one that remains (exchange ids, hexadecimal keys), or
    in the same document. The same question, asked before, is no measure: it may have no answer. The exchanges of
    an author who repeats it measure only each other, and those whose ids are in `repeated`, which exist in many copies,
    do not count as the best one.
    """
    passing = [candidate for candidate in candidates if not is_below(candidate)]
    measures = [c for c in passing if c.lexical_score < _REPEATED_QUESTION and c.id not in repeated]
    repeating = {c.owner_id for c in passing if c.has_question}
    best = max((c.score for c in measures if c.owner_id not in repeating), default=0.0)
    best_of = {c.owner_id: max(best, *(m.score for m in measures if m.owner_id == c.owner_id), 0.0) for c in passing}
    remaining = [c for c in passing if c.is_pinned or c.score >= _MIN_SCORE_SHARE * best_of[c.owner_id]]
    documents = {c.document for c in remaining if c.document}
    kept = {c.id for c in (*remaining, *(c for c in passing if c.document in documents))}
    kept |= {id.hex for c in remaining for id in related.get(c.id, ())}
    return lambda candidate: is_below(candidate) or candidate.id not in kept


def is_follow_up(traits: MessageTraits | None) -> bool:
    """Return True if the message depends on the previous ones; False if its traits are unknown."""
    return traits is not None and traits.follow_up >= _MIN_FOLLOW_UP


def _wants_memory(query: Query, pool: CandidatePool, traits: MessageTraits) -> bool:
    name_evidence = _name_evidence(pool)
    if not query.has_context and traits.follow_up >= _MIN_INCOMPLETE and name_evidence <= 0:
        return False  # "and when was that?" could only recall something arbitrary
    continues = query.has_context and is_follow_up(traits)
    evidence = traits.wants_memory + name_evidence
    if evidence >= (_MIN_FOLLOW_UP_EVIDENCE if continues else _MIN_EVIDENCE):
        return True
    return evidence >= _MIN_EVIDENCE_FOR_STATEMENT and _has_statement(pool, configured_level(query.generation.model))


def _has_statement(pool: CandidatePool, level: Level) -> bool:
    similar = (c for c in pool.candidates if c.similarity is not None and c.similarity >= level.same_subject)
    ids = [uuid.UUID(candidate.id) for candidate in similar if candidate.lexical_score >= _MIN_STATEMENT_SCORE]
    return bool(ids) and Statement.objects.filter(pk__in=ids).exists()


def _is_chance_hit(candidate: Candidate, level: Level) -> bool:
    """Return True if no term that the candidate shares counts, and it is hardly similar, or nobody knows how similar.

    In a small store such a candidate can rank high only for lack of others.
    """
    if candidate.is_pinned or candidate.lexical_score:
        return False
    lowest = level.unrelated + _MIN_SIMILARITY_SHARE * (level.similarity - level.unrelated)
    return candidate.similarity is None or candidate.similarity < lowest


def _name_evidence(pool: CandidatePool) -> float:
    """Return the evidence from names and numbers in the query: the best coverage by one candidate, less what it lacks.

    For a few keywords, it is at least that of the rarest words that a candidate contains.

    A name that no candidate contains gets the weight of an unknown term, even if it is common in other spaces.
    Otherwise the weight would reveal that it occurs there.
    """
    query_terms = pool.lexical_query.terms
    sentence_starts = _sentence_starts(pool.query.text)
    is_name = np.array([_is_name(query_term.word, sentence_starts) for query_term in query_terms], dtype=bool)
    if not query_terms or not pool.candidates:
        return 0.0
    contains = pool.term_frequencies[: len(pool.candidates)] > 0
    idfs = np.array([query_term.idf for query_term in query_terms])
    rare = 0.0
    if max(len(query_terms), len(pool.query.text.split())) <= _MAX_KEYWORDS:
        rare = _NAME_WEIGHT * float((contains @ (idfs * pool.rarities)).max()) / float(idfs.sum())
    if not is_name.any():
        return rare
    weights = np.where(is_name & ~contains.any(axis=0), pool.lexical_query.unseen_idf, idfs)
    name_weights = weights * is_name
    factor = _NAME_WEIGHT_IN_GERMAN if detect_language(pool.query.text) == "german" else _NAME_WEIGHT
    named = factor * float(2 * (contains @ name_weights).max() - name_weights.sum()) / float(weights.sum())
    return max(named, rare) if rare else named


def _sentence_starts(text: str) -> frozenset[str]:
    """Return the first word of each sentence, whose capital need not make it a name."""
    starts, end = set(), None
    for word in _WORD.finditer(text):
        if end is None or _SENTENCE_END.search(text, end, word.start()):
            starts.add(word.group())
        end = word.end()
    return frozenset(starts)


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

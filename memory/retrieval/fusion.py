"""Fusion of the vector score and the lexical score.

Both scores are absolute: a cosine, and the share of the maximum possible lexical score. Neither is relative to the best
hit. So a query that shares no term with its answer is decided by its vector, despite chance matches elsewhere. A query
with a rare term is decided by that term.

Each score includes the neighbours of an exchange, because an answer often spans several exchanges. Two similar vectors
of an exchange count more than one, and terms that occur close together more than scattered ones. Finally, a prior
favours exchanges that are likely to answer any query, or a query of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from memory.lexical import bm25, expected
from memory.lexical.bm25 import QueryTerm
from memory.retrieval.candidates import Candidate, CandidatePool, have_question
from memory.retrieval.levels import configured_level

# Tuned on conversations between people, on long conversations with an assistant, and on work exchanges in four
# languages; docs/retrieval.md has the figures.
# Weights of the two parts of the lexical score: terms, and their proximity.
_TERM_WEIGHT = 0.8
_PROXIMITY_WEIGHT = 0.25
# Lexical scores, from 0 to 1. If the best one is at most _CHANCE_LEXICAL_SCORE, matches are due to chance and lexical
# scores are ignored. From _FULL_LEXICAL_SCORE on they count in full.
_CHANCE_LEXICAL_SCORE, _FULL_LEXICAL_SCORE = 0.15, 0.4
# Best lexical scores between which a query passes from a paraphrase, which is compared with messages alone, to one that
# shares rare terms with an exchange, which is compared with all its vectors and its neighbours.
_PARAPHRASE_SCORE, _SHARED_TERMS_SCORE = 0.2, 0.26
# Number of vectors from which an exchange is long: it has that of the whole, and those of several pieces of its texts. Then
# the best of these counts only by this share, and the message for the rest.
_LONG_EXCHANGE, _BEST_VECTOR_SHARE_IF_LONG = 4, 0.25
# Shares, from 0 to 1: of the lexical score that includes the neighbours, of the second-best vector, and of the
# predecessor's and the successor's similarity.
_NEIGHBOURHOOD_SHARE = 0.5
_SECOND_VECTOR_SHARE = 0.2
_PREDECESSOR_SHARE, _SUCCESSOR_SHARE = 0.15, 0.2
# Number of terms above which an exchange depends less on its neighbours, in inverse proportion to its length.
_SHORT_EXCHANGE = 120
# Share of a session's best score that is added to all its candidates, and the addition for a pinned exchange.
_SESSION_BOOST = 0.15
_PIN_BOOST = 0.3
# Weights of the prior: how informative a text is, and whether it has the type of answer that the query asks for.
_INFORMATIVENESS_WEIGHT, _ANSWER_TYPE_WEIGHT = 0.18, 0.1
# Addition for a rare word that occurs in at most _MAX_RARE candidates: it decides, even if other words are unknown.
_RARE_WORD_BOOST = 0.4
_MAX_RARE = 5
# Size of the proximity window in terms, about one sentence. Windows of 4 to 16 differed by less than a hundredth.
WINDOW = 12

Positions = NDArray[np.int64]


def fuse(pool: CandidatePool, *, lexical_weight: float) -> list[Candidate]:
    """Set the score of every candidate and return the pool's candidates, unsorted.

    `lexical_weight` sets the balance: .5 is the measured one, 0 uses vectors only, 1 uses terms only.
    """
    if not pool.candidates:
        return []
    predecessors, successors = _neighbour_positions(pool)
    lengths = np.array([row.terms.count(" ") + 1 for row in pool.rows], dtype=np.float64)
    own_scores = _own_lexical_scores(pool, lengths)
    has_question = have_question(pool.lexical_query, pool.term_frequencies[: len(pool.candidates)] > 0)
    best_scores = _best_for_authors(pool, own_scores, has_question)
    shares_terms = _ramp(best_scores, _PARAPHRASE_SCORE, _SHARED_TERMS_SCORE)
    vector_scores = _vector_scores(pool, predecessors, successors, lengths, shares_terms)
    lexical_scores = _lexical_scores(pool, predecessors, successors, lengths, own_scores)
    if pool.similarity_by_id:  # without vectors the lexical score is not scaled down
        lexical_scores = (
            lexical_scores * _ramp(best_scores, _CHANCE_LEXICAL_SCORE, _FULL_LEXICAL_SCORE)[: len(own_scores)]
        )
    lexical = _TERM_WEIGHT * lexical_scores + _PROXIMITY_WEIGHT * _proximities(pool)
    scores = 2 * (1 - lexical_weight) * vector_scores + 2 * lexical_weight * lexical + _priors(pool)
    scores += 2 * lexical_weight * _RARE_WORD_BOOST * _rarest_matches(pool, has_question)
    for candidate, score, lexical_score, has in zip(pool.candidates, scores, lexical_scores, has_question, strict=True):
        candidate.has_question = bool(has)
        candidate.score = float(score) + _PIN_BOOST * candidate.is_pinned
        candidate.lexical_score = float(lexical_score)
    _set_lexical_ranks(pool.candidates)
    _boost_sessions(pool.candidates)
    return pool.candidates


def _neighbour_positions(pool: CandidatePool) -> tuple[Positions, Positions]:
    """Return the positions in `pool.rows` of each candidate's predecessor and successor; its own if it has none."""
    rows = pool.rows
    position = {row.id: i for i, row in enumerate(rows)}
    successor_position = {row.previous_id: i for i, row in enumerate(rows) if row.previous_id}
    predecessors = [position.get(c.previous_id or "", i) for i, c in enumerate(pool.candidates)]
    successors = [successor_position.get(c.id, i) for i, c in enumerate(pool.candidates)]
    return np.array(predecessors), np.array(successors)


def _best_for_authors(pool: CandidatePool, own_scores: bm25.Numbers, has_question: NDArray[np.bool_]) -> bm25.Numbers:
    """Return for each of `pool.rows` the best lexical score among the candidates that count for its author.

    These are all but those of others who repeat the question. Somebody who stores questions with false answers would
    otherwise decide that everybody's answers are compared by the terms of the question.
    """
    repeating = {c.owner_id for c, has in zip(pool.candidates, has_question, strict=True) if has}
    counts = np.array([candidate.owner_id not in repeating for candidate in pool.candidates])
    best = float(own_scores[counts].max(initial=0.0))
    of_author: dict[str, float] = {}
    for candidate, score in zip(pool.candidates, own_scores, strict=True):
        of_author[candidate.owner_id] = max(of_author.get(candidate.owner_id, best), float(score))
    return np.array([of_author.get(row.owner_id, best) for row in pool.rows])


def _ramp(values: bm25.Numbers, low: float, high: float) -> bm25.Numbers:
    """Return 0 up to `low`, 1 from `high` on, and a value in proportion between them."""
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _vector_scores(
    pool: CandidatePool,
    predecessors: Positions,
    successors: Positions,
    lengths: bm25.Numbers,
    shares_terms: bm25.Numbers,
) -> bm25.Numbers:
    """Return each candidate's similarity, mixed with its neighbours'.

    `shares_terms`, from 0 to 1, is how clearly the query shares rare terms with a candidate, for each of `pool.rows`.
    A paraphrase (0) is only compared with messages: vectors of answers and of whole exchanges, and neighbours, bring in
    other subjects. A query that shares terms is compared with everything, because the other vectors then say which of the
    matches is meant. Of a long exchange the message counts most even then: among many pieces of an answer, one is similar
    to nearly any query.
    """
    is_long = np.array([row.vectors >= _LONG_EXCHANGE for row in pool.rows], dtype=bool)
    best_share = shares_terms * np.where(is_long, _BEST_VECTOR_SHARE_IF_LONG, 1.0)
    similarities = best_share * _best_similarities(pool) + (1 - best_share) * _message_similarities(pool)
    own = similarities[: len(pool.candidates)]
    context_share = shares_terms[: len(own)] * np.minimum(1.0, _SHORT_EXCHANGE / lengths[: len(own)])
    mixed: bm25.Numbers = own + context_share * (
        _PREDECESSOR_SHARE * (similarities[predecessors] - own) + _SUCCESSOR_SHARE * (similarities[successors] - own)
    )
    return mixed


def _best_similarities(pool: CandidatePool) -> bm25.Numbers:
    """Return for each of `pool.rows` the comparable similarity of its best vectors."""
    known = {
        id: (1 - _SECOND_VECTOR_SHARE) * similarity.best + _SECOND_VECTOR_SHARE * similarity.second
        for id, similarity in pool.similarity_by_id.items()
    }
    return _comparable(pool, known, lowest=min(known.values(), default=0.0))


def _message_similarities(pool: CandidatePool) -> bm25.Numbers:
    """Return for each of `pool.rows` the comparable similarity of its message.

    An exchange with a single vector, such as a note or a chunk, is a message as a whole.
    """
    lowest = min((similarity.second for similarity in pool.similarity_by_id.values()), default=0.0)
    known = {
        row.id: similarity.best if row.vectors <= 1 else max(similarity.message, lowest)
        for row in pool.rows
        if (similarity := pool.similarity_by_id.get(row.id)) is not None
    }
    return _comparable(pool, known, lowest=lowest)


def _comparable(pool: CandidatePool, known: Mapping[str, float], *, lowest: float) -> bm25.Numbers:
    """Return the similarity of each of `pool.rows` on the scale that all models share, from the known cosines by id.

    A row without a known cosine is not among the nearest, so it gets the `lowest` known one. One that is not indexed yet
    gets the mean of the candidates that share terms with the query. If no cosine is known, all rows count as unrelated.
    """
    level = configured_level(pool.query.generation.model)
    unknown = lowest if pool.similarity_by_id else level.unrelated
    shares_terms: NDArray[np.bool_] = pool.term_frequencies[: len(pool.candidates)].sum(axis=1) > 0
    sharing = [known[c.id] for c, shares in zip(pool.candidates, shares_terms, strict=True) if shares and c.id in known]
    not_indexed = fmean(sharing) if sharing else unknown
    cosines = [known.get(row.id, unknown if row.vectors else not_indexed) for row in pool.rows]
    return np.array([level.comparable(cosine) for cosine in cosines])


def _own_lexical_scores(pool: CandidatePool, lengths: bm25.Numbers) -> bm25.Numbers:
    """Return each candidate's lexical score without its neighbours."""
    count = len(pool.candidates)
    lexical_query = pool.lexical_query
    if not lexical_query.terms:
        return np.zeros(count)
    return bm25.normalised_scores(
        lexical_query.terms, pool.term_frequencies[:count], lengths[:count], lexical_query.mean_length
    )


def _lexical_scores(
    pool: CandidatePool,
    predecessors: Positions,
    successors: Positions,
    lengths: bm25.Numbers,
    own_scores: bm25.Numbers,
) -> bm25.Numbers:
    """Return each candidate's lexical score, the mean of the score alone and the score together with its neighbours."""
    query_terms, mean_length = pool.lexical_query.terms, pool.lexical_query.mean_length
    if not query_terms:
        return own_scores
    tf = pool.term_frequencies
    own = np.arange(len(pool.candidates))
    has_predecessor, has_successor = predecessors != own, successors != own
    joint_tf = tf[own] + tf[predecessors] * has_predecessor[:, None] + tf[successors] * has_successor[:, None]
    joint_lengths = lengths[own] + lengths[predecessors] * has_predecessor + lengths[successors] * has_successor
    joint_scores = bm25.normalised_scores(query_terms, joint_tf, joint_lengths, 3 * mean_length)
    scores: bm25.Numbers = np.where(
        has_predecessor | has_successor,
        (1 - _NEIGHBOURHOOD_SHARE) * own_scores + _NEIGHBOURHOOD_SHARE * joint_scores,
        own_scores,
    )
    return scores


def _priors(pool: CandidatePool) -> bm25.Numbers:
    """Return the prior of each candidate: likely to answer any query, or a query of this kind."""
    kind = expected.kind_asked(pool.query.text)
    return np.array(
        [
            _INFORMATIVENESS_WEIGHT * expected.amount(candidate.text_terms)
            + _ANSWER_TYPE_WEIGHT * (kind is not None and expected.says(kind, candidate.text_terms))
            for candidate in pool.candidates
        ]
    )


def _proximities(pool: CandidatePool) -> bm25.Numbers:
    """Return for each candidate the share of the query that occurs within one window of its terms."""
    distinct_terms = (pool.term_frequencies[: len(pool.candidates)] > 0).sum(axis=1)
    query_terms = pool.lexical_query.terms
    return np.array(
        [
            proximity(query_terms, candidate.terms.split(" ")) if count > 1 else 0.0
            for candidate, count in zip(pool.candidates, distinct_terms, strict=True)
        ]
    )


def _rarest_matches(pool: CandidatePool, has_question: NDArray[np.bool_]) -> bm25.Numbers:
    """Return for each candidate the rarity, from 0 to 1, of the rarest query term that it has and few others have.

    Candidates of other authors that repeat the question do not count.
    """
    contains = pool.term_frequencies[: len(pool.candidates)] > 0
    authors, author_of = np.unique([candidate.owner_id for candidate in pool.candidates], return_inverse=True)
    counts = [contains[~has_question | (author_of == author)].sum(axis=0) for author in range(len(authors))]
    decisive = pool.rarities * (np.array(counts)[author_of] <= _MAX_RARE)
    result: bm25.Numbers = (contains * decisive).max(axis=1, initial=0.0)
    return result


def _set_lexical_ranks(candidates: list[Candidate]) -> None:
    matching = sorted((c for c in candidates if c.lexical_score > 0), key=lambda c: (-c.lexical_score, c.id))
    for rank, candidate in enumerate(matching, start=1):
        candidate.ranks["words"] = rank


def _boost_sessions(candidates: list[Candidate]) -> None:
    """Raise the scores of a session's candidates in proportion to the best score in that session."""
    best: dict[str, float] = {}
    for candidate in candidates:
        session = candidate.session_id or candidate.id
        best[session] = max(best.get(session, candidate.score), candidate.score)
    for candidate in candidates:
        candidate.score += _SESSION_BOOST * best[candidate.session_id or candidate.id]


def proximity(query_terms: Sequence[QueryTerm], terms: Sequence[str]) -> float:
    """Return the largest weight of distinct query terms within WINDOW of `terms`, as a share of their total weight.

    A single matching term gives 0. `terms` are those of a text, in order.
    """
    weights = {query_term.term: query_term.idf for query_term in query_terms}
    prefixes = tuple(query_term.term for query_term in query_terms if query_term.is_prefix)
    best = 0.0
    last_positions: dict[str, int] = {}  # of each query term
    for position, term in enumerate(terms):
        if term not in weights:
            if not (prefixes and term.startswith(prefixes)):
                continue
            term = next(prefix for prefix in prefixes if term.startswith(prefix))
        last_positions[term] = position
        near = [weights[other] for other, last in last_positions.items() if position - last <= WINDOW]
        if len(near) > 1:
            best = max(best, sum(near))
    total = sum(weights.values())
    return best / total if total else 0.0

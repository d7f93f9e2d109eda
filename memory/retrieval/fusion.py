"""Fusion of the vector score and the lexical score.

Both scores are absolute: a cosine, and the share of the maximum possible lexical score. Neither is relative to the best
hit. So a query that shares no term with its answer is decided by its vector, despite chance matches elsewhere. A query
with a rare term is decided by that term.

Each score includes the neighbours of an exchange, because an answer often spans several exchanges. Two similar vectors
of an exchange count more than one, and terms that occur close together more than scattered ones. Finally, a prior
favours exchanges that are likely to answer any query, or a query of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.lexical import bm25, expected
from memory.lexical.bm25 import QueryTerm
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.levels import shipped_level

# Tuned on conversations between people and on work exchanges in four languages; docs/retrieval.md has the figures.
_WORDS = 0.8
_PROXIMITY_WEIGHT = 0.2
# If the best lexical score is at most the first value, matches are due to chance and the lexical score is ignored. From
# the second value on it counts in full.
_CHANCE, _TELLING = 0.15, 0.4
_WIDE = 0.5
_SECOND = 0.2
_BEFORE, _AFTER = 0.15, 0.25
_SESSION = 0.15
_PIN = 0.1
# Weights of the prior: the amount of content, and content of the kind that the query asks for.
_AMOUNT, _KIND = 0.18, 0.06


def fuse(pool: CandidatePool, *, lexical_weight: float) -> list[Candidate]:
    """Set the score of every candidate and return the pool's candidates, unsorted.

    `lexical_weight` sets the balance: .5 is the measured one, 0 uses vectors only, 1 uses terms only.
    """
    if not pool.candidates:
        return []
    before, after = _neighbours(pool)
    meaning, words = _meaning(pool, before, after), _words(pool, before, after)
    lexical = _WORDS * words + _PROXIMITY_WEIGHT * _together(pool)
    scores = 2 * (1 - lexical_weight) * meaning + 2 * lexical_weight * lexical + _likely(pool)
    for candidate, score, said in zip(pool.candidates, scores, words, strict=True):
        candidate.score = float(score) + _PIN * candidate.is_pinned
        candidate.words = float(said)
    _rank_by_words(pool.candidates)
    _lean_on_sessions(pool.candidates)
    return pool.candidates


Places = NDArray[np.int64]


def _neighbours(pool: CandidatePool) -> tuple[Places, Places]:
    """Return the positions of each candidate's predecessor and successor in `pool.everything`; its own if it has none."""
    everything = pool.everything
    place = {row.id: i for i, row in enumerate(everything)}
    follower = {row.previous_id: i for i, row in enumerate(everything) if row.previous_id}
    before = [place.get(c.previous_id or "", i) for i, c in enumerate(pool.candidates)]
    after = [follower.get(c.id, i) for i, c in enumerate(pool.candidates)]
    return np.array(before), np.array(after)


def _meaning(pool: CandidatePool, before: Places, after: Places) -> bm25.Numbers:
    """Return each candidate's similarity, mixed with its neighbours'.

    Exchanges that are not among the nearest get the lowest known similarity.
    """
    level = shipped_level(pool.query.generation.model)
    similar = {
        id: level.comparable((1 - _SECOND) * near.best + _SECOND * near.second) for id, near in pool.similar.items()
    }
    floor = min(similar.values(), default=0.0)
    all_of_them = np.array([similar.get(row.id, floor) for row in pool.everything])
    own = all_of_them[: len(pool.candidates)]
    leaning: bm25.Numbers = (1 - _BEFORE - _AFTER) * own + _BEFORE * all_of_them[before] + _AFTER * all_of_them[after]
    return leaning


def _words(pool: CandidatePool, before: Places, after: Places) -> bm25.Numbers:
    """Return each candidate's lexical score, the mean of the score alone and the score together with its neighbours."""
    asked, mean = pool.question.asked, pool.question.mean_length
    if not asked:
        return np.zeros(len(pool.candidates))
    tf = pool.held
    lengths = np.array([row.terms.count(" ") + 1 for row in pool.everything], dtype=np.float64)
    own = np.arange(len(pool.candidates))
    has_before, has_after = before != own, after != own
    near = bm25.normalised_scores(asked, tf[own], lengths[own], mean)
    wide_tf = tf[own] + tf[before] * has_before[:, None] + tf[after] * has_after[:, None]
    wide_lengths = lengths[own] + lengths[before] * has_before + lengths[after] * has_after
    wide = bm25.normalised_scores(asked, wide_tf, wide_lengths, 3 * mean)
    said: bm25.Numbers = np.where(has_before | has_after, (1 - _WIDE) * near + _WIDE * wide, near)
    if not pool.similar:  # without vectors the lexical score is not scaled down
        return said
    trust = np.clip((near.max() - _CHANCE) / (_TELLING - _CHANCE), 0.0, 1.0)
    return said * float(trust)


def _likely(pool: CandidatePool) -> bm25.Numbers:
    """Return the prior of each candidate: likely to answer any query, or a query of this kind."""
    kind = expected.kind_asked(pool.query.text)
    return np.array(
        [
            _AMOUNT * expected.amount(candidate.said)
            + _KIND * (kind is not None and expected.says(kind, candidate.said))
            for candidate in pool.candidates
        ]
    )


def _together(pool: CandidatePool) -> bm25.Numbers:
    """Return for each candidate the share of the query that occurs within one window of its terms."""
    held = (pool.held[: len(pool.candidates)] > 0).sum(axis=1)
    asked = pool.question.asked
    return np.array(
        [
            together(asked, candidate.terms.split(" ")) if terms > 1 else 0.0
            for candidate, terms in zip(pool.candidates, held, strict=True)
        ]
    )


def _rank_by_words(candidates: list[Candidate]) -> None:
    matching = sorted((c for c in candidates if c.words > 0), key=lambda c: (-c.words, c.id))
    for rank, candidate in enumerate(matching, start=1):
        candidate.ranks["words"] = rank


def _lean_on_sessions(candidates: list[Candidate]) -> None:
    """Raise the scores of a session's candidates in proportion to the best score in that session."""
    best: dict[str, float] = {}
    for candidate in candidates:
        session = candidate.session_id or candidate.id
        best[session] = max(best.get(session, candidate.score), candidate.score)
    for candidate in candidates:
        candidate.score += _SESSION * best[candidate.session_id or candidate.id]


# In terms, about one sentence. Windows of 4 to 16 differed by less than a hundredth.
WINDOW = 12


def together(asked: Sequence[QueryTerm], terms: Sequence[str]) -> float:
    """Return the largest weight of distinct `asked` terms within WINDOW of `terms`, as a share of their total weight.

    A single matching term gives 0. `terms` are those of a text, in order.
    """
    weights = {ask.term: ask.idf for ask in asked}
    beginnings = tuple(ask.term for ask in asked if ask.is_prefix)
    best = 0.0
    recent: dict[str, int] = {}  # last position of each query term
    for place, term in enumerate(terms):
        if term not in weights:
            if not (beginnings and term.startswith(beginnings)):
                continue
            term = next(beginning for beginning in beginnings if term.startswith(beginning))
        recent[term] = place
        near = [weights[other] for other, at in recent.items() if place - at <= WINDOW]
        if len(near) > 1:
            best = max(best, sum(near))
    possible = sum(weights.values())
    return best / possible if possible else 0.0

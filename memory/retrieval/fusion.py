"""The stage that weighs meaning and words against each other.

Both sides are numbers of their own meaning, not shares of the best that was found: a cosine, and how much of what the
words could say at most they do say. A question that shares no word with its answer is so decided by meaning, whatever
chance words it shares with others; one that names something rare is decided by that. Each side also looks at what was
said right before and after, since a question is often answered across several exchanges; an exchange of which two vectors
are near is nearer than one of which a single one is, and words that stand together say more than scattered ones. Last,
some exchanges are likelier than others to answer anything, or a question of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.lexical import bm25, expected
from memory.lexical.bm25 import QueryTerm
from memory.retrieval.candidates import Candidate, CandidatePool

# Chosen on conversations between people and on work exchanges in four languages (docs/retrieval.md has the figures).
_WORDS = 0.8
_TOGETHER = 0.2
# Where the best candidate's words say no more than the first of these shares of what they could say, they are there by
# chance and count for nothing; from the second on they count in full.
_CHANCE, _TELLING = 0.15, 0.4
_WIDE = 0.5
_SECOND = 0.2
_BEFORE, _AFTER = 0.15, 0.25
_SESSION = 0.15
_PIN = 0.1
# What says much, and what says the kind of thing that is asked for, is likelier to hold the answer.
_AMOUNT, _KIND = 0.18, 0.06


def fuse(pool: CandidatePool, *, lexical_weight: float) -> list[Candidate]:
    """Give every candidate its score and return them best first.

    `lexical_weight` moves the balance: .5 as measured, 0 meaning only, 1 words only.
    """
    if not pool.candidates:
        return []
    before, after = _neighbours(pool)
    meaning, words = _meaning(pool, before, after), _words(pool, before, after)
    lexical = _WORDS * words + _TOGETHER * _together(pool)
    scores = 2 * (1 - lexical_weight) * meaning + 2 * lexical_weight * lexical + _likely(pool)
    for candidate, score, said in zip(pool.candidates, scores, words, strict=True):
        candidate.score = float(score) + _PIN * candidate.is_pinned
        candidate.words = float(said)
    _rank_by_words(pool.candidates)
    _lean_on_sessions(pool.candidates)
    return pool.candidates


Places = NDArray[np.int64]


def _neighbours(pool: CandidatePool) -> tuple[Places, Places]:
    """Where among candidates and what is beside them each candidate's neighbours stand; itself where it has none."""
    everything = pool.everything
    place = {row.id: i for i, row in enumerate(everything)}
    follower = {row.previous_id: i for i, row in enumerate(everything) if row.previous_id}
    before = [place.get(c.previous_id or "", i) for i, c in enumerate(pool.candidates)]
    after = [follower.get(c.id, i) for i, c in enumerate(pool.candidates)]
    return np.array(before), np.array(after)


def _meaning(pool: CandidatePool, before: Places, after: Places) -> bm25.Numbers:
    """Each candidate's similarity leaning towards its neighbours'; what is not among the nearest is no nearer."""
    similar = {id: (1 - _SECOND) * near.best + _SECOND * near.second for id, near in pool.near.items()}
    floor = min(similar.values(), default=0.0)
    all_of_them = np.array([similar.get(row.id, floor) for row in pool.everything])
    own = all_of_them[: len(pool.candidates)]
    leaning: bm25.Numbers = (1 - _BEFORE - _AFTER) * own + _BEFORE * all_of_them[before] + _AFTER * all_of_them[after]
    return leaning


def _words(pool: CandidatePool, before: Places, after: Places) -> bm25.Numbers:
    """What each candidate's words say, by themselves and together with its neighbours'."""
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
    if not pool.near:  # there is no meaning to be weighed against
        return said
    trust = np.clip((near.max() - _CHANCE) / (_TELLING - _CHANCE), 0.0, 1.0)
    return said * float(trust)


def _likely(pool: CandidatePool) -> bm25.Numbers:
    """How likely each candidate is to answer anything, and a question of this kind."""
    kind = expected.kind_asked(pool.query.text)
    return np.array(
        [
            _AMOUNT * expected.amount(candidate.said)
            + _KIND * (kind is not None and expected.says(kind, candidate.said))
            for candidate in pool.candidates
        ]
    )


def _together(pool: CandidatePool) -> bm25.Numbers:
    """How much of the question stands close together in each candidate."""
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
    """Where one exchange of a session fits well, its others are likelier to belong to the answer."""
    best: dict[str, float] = {}
    for candidate in candidates:
        session = candidate.session_id or candidate.id
        best[session] = max(best.get(session, candidate.score), candidate.score)
    for candidate in candidates:
        candidate.score += _SESSION * best[candidate.session_id or candidate.id]


# Terms; about a sentence. Windows of 4 to 16 differed by less than a hundredth.
WINDOW = 12


def together(asked: Sequence[QueryTerm], terms: Sequence[str]) -> float:
    """The most of `asked` that stands within WINDOW of `terms`, as a share of the weight of all; 0 for a single term.

    `terms` are a text's, in their order.
    """
    weights = {ask.term: ask.idf for ask in asked}
    beginnings = tuple(ask.term for ask in asked if ask.is_prefix)
    best = 0.0
    recent: dict[str, int] = {}  # where each term of the question stood last
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

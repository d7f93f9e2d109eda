"""Variety: near-duplicates collapse, no author fills the results alone, and maximal marginal relevance for who wants more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from memory.retrieval.candidates import Candidate

_SAME = 0.9
# Of so many results in a row, at most so many are of one author, and of one document.
IN_A_ROW, MOST_OF_ONE_SOURCE = 5, 2


def mmr(ranked: list[Candidate], *, wanted: int, balance: float) -> list[Candidate]:
    """Reorder the first three times `wanted` by maximal marginal relevance (Carbonell and Goldstein, 1998).

    `balance` is their lambda: 1 is relevance only, 0 variety only. Two exchanges are as alike as their words.
    """
    left = ranked[: 3 * wanted]
    rest = ranked[len(left) :]
    if not left:
        return ranked
    best = max(left[0].score, 1e-9)
    words = {c.id: c.said for c in left}
    alike = dict.fromkeys(words, 0.0)
    chosen: list[Candidate] = []
    while left:
        pick = max(left, key=lambda c: balance * c.score / best - (1 - balance) * alike[c.id])
        left.remove(pick)
        chosen.append(pick)
        for candidate in left:
            alike[candidate.id] = max(alike[candidate.id], overlap(words[pick.id], words[candidate.id]))
    return chosen + rest


def deduplicate(ranked: Iterable[Candidate], most: int) -> list[Candidate]:
    """The first `most`, of those that say nearly the same only the best."""
    kept: list[Candidate] = []
    for candidate in ranked:
        if len(kept) == most:
            break
        if not any(_are_same(candidate.said, other.said) for other in kept):
            kept.append(candidate)
    return kept


def spread(ranked: Sequence[Candidate], most: int, *, passes: Callable[[Candidate], bool]) -> list[Candidate]:
    """The first `most` as `deduplicate`, but of each five in a row at most two of one author or document.

    More of one source follow only where no other candidate passes the gate.
    """
    left = list(ranked)
    kept: list[Candidate] = []
    taken: Counter[str] = Counter()
    while left and len(kept) < most:
        if len(kept) % IN_A_ROW == 0:
            taken.clear()
        pick = next((c for c in left if _has_room(c, taken) and passes(c)), left[0])
        left.remove(pick)
        if not any(_are_same(pick.said, other.said) for other in kept):
            kept.append(pick)
            taken.update(_sources(pick))
    return kept


def _has_room(candidate: Candidate, taken: Counter[str]) -> bool:
    return all(taken[source] < MOST_OF_ONE_SOURCE for source in _sources(candidate))


def _sources(candidate: Candidate) -> list[str]:
    return [source for source in (candidate.owner_id, candidate.document) if source]


def _are_same(one: frozenset[str], other: frozenset[str]) -> bool:
    # Told by their numbers alone as a rule.
    if len(one) < _SAME * len(other) or len(other) < _SAME * len(one):
        return False
    return overlap(one, other) >= _SAME


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's index; what has no words is like nothing."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0

"""Variety: results that say the same thing twice collapse, and maximal marginal relevance for who wants more."""

from __future__ import annotations

from collections.abc import Iterable

from memory.retrieval.candidates import Candidate

_SAME = 0.9


def vary(ranked: list[Candidate], *, wanted: int, balance: float) -> list[Candidate]:
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
            alike[candidate.id] = max(alike[candidate.id], _overlap(words[pick.id], words[candidate.id]))
    return chosen + rest


def without_repeats(ranked: Iterable[Candidate], most: int) -> list[Candidate]:
    """The first `most`, of those that say nearly the same only the best."""
    kept: list[Candidate] = []
    for candidate in ranked:
        if len(kept) == most:
            break
        if not any(_are_same(candidate.said, other.said) for other in kept):
            kept.append(candidate)
    return kept


def _are_same(one: frozenset[str], other: frozenset[str]) -> bool:
    # Told by their numbers alone as a rule.
    if len(one) < _SAME * len(other) or len(other) < _SAME * len(one):
        return False
    return _overlap(one, other) >= _SAME


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's index; what has no words is like nothing."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0

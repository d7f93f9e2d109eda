"""Variety: results that say the same thing twice collapse, and maximal marginal relevance for who wants more."""

from __future__ import annotations

from collections.abc import Iterable

from memory.retrieval.candidates import Candidate, said_by

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
    words = {c.id: said_by(c) for c in left}
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
    said: list[frozenset[str]] = []
    for candidate in ranked:
        if len(kept) == most:
            break
        words = said_by(candidate)
        if not any(_are_same(words, other) for other in said):
            kept.append(candidate)
            said.append(words)
    return kept


def _are_same(one: frozenset[str], other: frozenset[str]) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    return shorter >= _SAME * longer and _overlap(one, other) >= _SAME


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's index; what has no words is like nothing."""
    return len(one & other) / len(one | other) if one and other else 0.0

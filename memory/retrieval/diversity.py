"""Diversity: remove near-duplicates, limit the share of one author or document, and reorder by marginal relevance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from memory.retrieval.candidates import Candidate

_DUPLICATE_OVERLAP = 0.9
# Of this many consecutive hits, at most this many are of one author, and of one document.
IN_A_ROW, MAX_PER_SOURCE = 5, 2


def mmr(ranked: list[Candidate], *, limit: int, balance: float) -> list[Candidate]:
    """Reorder the first 3 × `limit` candidates by maximal marginal relevance (Carbonell and Goldstein, 1998).

    `balance` is their lambda: 1 uses relevance only, 0 diversity only. The similarity of two exchanges is their term
    overlap.
    """
    remaining = ranked[: 3 * limit]
    rest = ranked[len(remaining) :]
    if not remaining:
        return ranked
    best = max(remaining[0].score, 1e-9)
    terms = {c.id: c.text_terms for c in remaining}
    max_overlap = dict.fromkeys(terms, 0.0)
    chosen: list[Candidate] = []
    while remaining:
        pick = max(remaining, key=lambda c: balance * c.score / best - (1 - balance) * max_overlap[c.id])
        remaining.remove(pick)
        chosen.append(pick)
        for candidate in remaining:
            max_overlap[candidate.id] = max(max_overlap[candidate.id], overlap(terms[pick.id], terms[candidate.id]))
    return chosen + rest


def deduplicate(ranked: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Return the first `limit` candidates, keeping only the best of near-duplicates."""
    kept: list[Candidate] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        if not any(_are_duplicates(candidate.text_terms, other.text_terms) for other in kept):
            kept.append(candidate)
    return kept


def spread(
    ranked: Sequence[Candidate], limit: int, *, passes: Callable[[Candidate], bool], copies: Mapping[str, str]
) -> list[Candidate]:
    """Deduplicate, and keep at most two of five consecutive candidates per author, document or text that was copied.

    `copies` has, by the id of a candidate, the id of the one that it is a copy of. Returns at most `limit` candidates.
    More of one source follow only if no other candidate passes the gate.
    """
    remaining = list(ranked)
    sources = {c.id: {source for source in (c.owner_id, c.document, copies.get(c.id)) if source} for c in remaining}
    kept: list[Candidate] = []
    counts: Counter[str] = Counter()
    while remaining and len(kept) < limit:
        if len(kept) % IN_A_ROW == 0:
            counts.clear()
        full = {source for source, count in counts.items() if count >= MAX_PER_SOURCE}
        pick = next((c for c in remaining if full.isdisjoint(sources[c.id]) and passes(c)), remaining[0])
        remaining.remove(pick)
        if not any(_are_duplicates(pick.text_terms, other.text_terms) for other in kept):
            kept.append(pick)
            counts.update(sources[pick.id])
    return kept


def _are_duplicates(one: frozenset[str], other: frozenset[str]) -> bool:
    # The sizes alone rule out most pairs.
    if len(one) < _DUPLICATE_OVERLAP * len(other) or len(other) < _DUPLICATE_OVERLAP * len(one):
        return False
    return overlap(one, other) >= _DUPLICATE_OVERLAP and have_same_numbers(one, other)


def have_same_numbers(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return False if a term with a digit is in one set only: texts about two invoices can differ in a number alone.

    The author's name is among the terms, so texts of two authors with digits in their names count as different.
    """
    return not any(character.isnumeric() for term in one ^ other for character in term)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard index; two sets without common terms have 0."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0

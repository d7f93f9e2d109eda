"""Near-duplicates, whose messages and whole texts have nearly the same vectors, and copies, which repeat the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.diversity import MAX_PER_SOURCE, have_same_numbers, overlap
from memory.retrieval.levels import Level
from memory.retrieval.text_vectors import TextVectors

# Texts with a smaller term overlap never reach the cosine of duplicates, so their vectors are not compared.
_MIN_OVERLAP = 0.4


def without_near_duplicates(
    ranked: Sequence[Candidate], vectors: Mapping[str, TextVectors], level: Level
) -> list[Candidate]:
    """Drop each candidate whose message and whole text are both duplicates of a better one's, by the model's level.

    Candidates without vectors remain, and so do those with other numbers, which vectors hardly distinguish.
    """
    kept: list[Candidate] = []
    for candidate in ranked:
        own = vectors.get(candidate.id)
        similar = [vectors[other.id] for other in kept if other.id in vectors and _may_be_duplicates(candidate, other)]
        if own is None or not any((_cosines(own, other) >= level.duplicate).all() for other in similar):
            kept.append(candidate)
    return kept


def find_copies(ranked: Sequence[Candidate], vectors: Mapping[str, TextVectors], level: Level) -> dict[str, str]:
    """Return for each candidate the id of the best one that it is a copy of, or its own; all repeat the question.

    Copies are as similar as messages on one subject. Several people who store them, each with small changes, would
    otherwise fill all places. Copies by one author are limited as that author's.
    """
    best: list[Candidate] = []
    copies: dict[str, str] = {}
    for candidate in ranked:
        own = vectors.get(candidate.id)
        if own is None:
            continue
        similar = (other for other in best if float(own.whole @ vectors[other.id].whole) >= level.same_subject)
        original = next(similar, candidate)
        copies[candidate.id] = original.id
        if original is candidate:
            best.append(candidate)
    return copies


def repeated_texts(copies: Mapping[str, str]) -> frozenset[str]:
    """Return the ids of the candidates of which there are more copies than one recall may have, from `find_copies`."""
    counts = Counter(copies.values())
    return frozenset(id for id, original in copies.items() if counts[original] > MAX_PER_SOURCE)


def _may_be_duplicates(one: Candidate, other: Candidate) -> bool:
    return overlap(one.text_terms, other.text_terms) >= _MIN_OVERLAP and have_same_numbers(
        one.text_terms, other.text_terms
    )


def _cosines(one: TextVectors, other: TextVectors) -> NDArray[np.float32]:
    """Return the cosines of the two whole texts and of the two messages."""
    return np.array([one.whole @ other.whole, one.message @ other.message])

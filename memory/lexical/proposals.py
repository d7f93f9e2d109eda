"""The exchanges that hold the words of a question: proposed by the database, no more than can be scored at once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.lexical import postings
from memory.lexical.analyser import terms_to_ask
from memory.lexical.bm25 import Asked

# A long message is asked by its longest words, of these the rarest; that is what it is about.
_MOST_COUNTED_TERMS = 48
_MOST_ASKED_TERMS = 24


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked by words: the weighted terms, and the mean length that scores are held against."""

    asked: tuple[Asked, ...]
    counts: tuple[int, ...]
    mean_length: float


def question(text: str) -> Question:
    """The terms of `text` with their weights, rarest first."""
    terms = terms_to_ask(text)
    if len(terms) > _MOST_COUNTED_TERMS:
        longest = sorted(terms, key=len, reverse=True)[:_MOST_COUNTED_TERMS]
        terms = {term: terms[term] for term in longest}
    weighted = postings.asked(terms)[:_MOST_ASKED_TERMS]
    return Question(
        asked=tuple(ask for ask, _ in weighted),
        counts=tuple(count for _, count in weighted),
        mean_length=postings.statistics.mean_length,
    )


def proposed(question: Question, spaces: Sequence[uuid.UUID], limit: int) -> list[int]:
    """The ids of at most `limit` rows of Words that hold the rarest terms, by the weight of the terms they hold.

    Of rows that hold the same terms the newest come first. All terms are looked up while together they stand in few
    enough rows; a common word beside rare ones adds to a score, not to the proposals.
    """
    found: list[postings.Rows] = []
    weights: list[float] = []
    room = postings.MOST_PROPOSED
    for ask, count in zip(question.asked, question.counts, strict=True):
        if not count:
            continue
        if found and count > room:
            break
        found.append(postings.rows_holding(ask, spaces))
        weights.append(ask.idf)
        room -= count
    if not found:
        return []
    rows, where = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.zeros(len(rows))
    np.add.at(weight, where, np.repeat(weights, [len(ids) for ids in found]))
    best = np.lexsort((-rows, -weight.round(6)))[:limit]
    return [int(row) for row in rows[best]]

"""The exchanges that hold the words of a question: proposed by the database, no more than can be scored at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memory.lexical import postings
from memory.lexical.analyser import query_terms
from memory.lexical.bm25 import QueryTerm, idf

# A long message is asked by its longest words, of these the rarest; that is what it is about.
_MOST_COUNTED_TERMS = 48
_MOST_ASKED_TERMS = 24


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """What is asked by words: the weighted terms, how many rows hold each, the mean length that scores are held against,
    and the weight of a term that no row holds."""

    asked: tuple[QueryTerm, ...]
    counts: tuple[int, ...]
    mean_length: float
    unheard: float


def build_lexical_query(text: str, spaces: Iterable[uuid.UUID]) -> LexicalQuery:
    """The terms of `text` as `spaces` have them, with their weights, rarest first."""
    terms = query_terms(text)
    if len(terms) > _MOST_COUNTED_TERMS:
        longest = sorted(terms, key=len, reverse=True)[:_MOST_COUNTED_TERMS]
        terms = {term: terms[term] for term in longest}
    weighted = postings.weigh_terms(terms, spaces)[:_MOST_ASKED_TERMS]
    return LexicalQuery(
        asked=tuple(ask for ask, _ in weighted),
        counts=tuple(count for _, count in weighted),
        mean_length=postings.statistics.mean_length,
        unheard=idf(postings.statistics.documents, 0),
    )


def lexical_candidates(question: LexicalQuery, spaces: Sequence[uuid.UUID], limit: int) -> list[str]:
    """At most `limit` exchanges whose words hold the rarest terms, by the weight of the terms they hold, best first.

    They are hexadecimal ids. Of those that hold the same terms the newest come first. All terms are looked up while
    together they stand in few enough rows; a common word beside rare ones adds to a score, not to the proposals.
    """
    asks = _looked_up(question)
    if not asks:
        return []
    if question.counts[0] > postings.MOST_PROPOSED:
        return postings.newest_with_term(asks[0], spaces, limit)
    found = postings.rows_with_terms(asks, spaces)
    rows, where = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.zeros(len(rows))
    np.add.at(weight, where, np.repeat([ask.idf for ask in asks], [len(ids) for ids in found]))
    return _first(rows[np.lexsort((-rows, -weight.round(6)))], spaces, limit)


def _looked_up(question: LexicalQuery) -> list[QueryTerm]:
    """The rarest terms, that together stand in no more than MOST_PROPOSED rows; the first may by itself stand in more."""
    asks: list[QueryTerm] = []
    room = postings.MOST_PROPOSED
    for ask, count in zip(question.asked, question.counts, strict=True):
        if not count or (asks and count > room):
            break  # what no row holds stands last
        asks.append(ask)
        room -= count
    return asks


def _first(rows: postings.RowIds, spaces: Sequence[uuid.UUID], limit: int) -> list[str]:
    """The first `limit` that lie in `spaces`, looked up a few at a time: most readers may read most of them."""
    taken: list[str] = []
    start, together = 0, 2 * limit
    while start < len(rows) and len(taken) < limit:
        taken += postings.exchange_ids_in_spaces(spaces, rows[start : start + together])
        start, together = start + together, 4 * together
    return taken[:limit]

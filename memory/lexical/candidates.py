"""Lexical candidates: exchanges with the query's terms, proposed by the database in a bounded number."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memory.lexical import postings
from memory.lexical.analyser import query_terms
from memory.lexical.bm25 import QueryTerm, idf

# Limits for a long message: look up its longest words, and search the rarest of these. They carry its subject.
_MAX_COUNTED_TERMS = 48
_MAX_ASKED_TERMS = 24


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """An analysed query.

    `asked` are the weighted terms and `counts` the numbers of rows that contain them. `mean_length` is the reference
    length for BM25. `unseen_idf` is the weight of a term that no row contains.
    """

    asked: tuple[QueryTerm, ...]
    counts: tuple[int, ...]
    mean_length: float
    unseen_idf: float


def build_lexical_query(text: str, spaces: Iterable[uuid.UUID]) -> LexicalQuery:
    """Return the analysed `text` with term variants found in `spaces` and weights, rarest terms first."""
    terms = query_terms(text)
    if len(terms) > _MAX_COUNTED_TERMS:
        longest = sorted(terms, key=len, reverse=True)[:_MAX_COUNTED_TERMS]
        terms = {term: terms[term] for term in longest}
    weighted = postings.weigh_terms(terms, spaces)[:_MAX_ASKED_TERMS]
    return LexicalQuery(
        asked=tuple(ask for ask, _ in weighted),
        counts=tuple(count for _, count in weighted),
        mean_length=postings.statistics.mean_length,
        unseen_idf=idf(postings.statistics.documents, 0),
    )


def lexical_candidates(question: LexicalQuery, spaces: Sequence[uuid.UUID], limit: int) -> list[str]:
    """Return at most `limit` exchanges in `spaces` with the rarest terms, ordered by the total weight of their terms.

    Returns hexadecimal ids. Of exchanges with the same terms the newest come first. Terms are looked up while their
    rows together number at most MAX_PROPOSED. A more common term contributes to scores but proposes no candidates.
    """
    asks = _looked_up(question)
    if not asks:
        return []
    if question.counts[0] > postings.MAX_PROPOSED:
        return postings.newest_with_term(asks[0], spaces, limit)
    found = postings.rows_with_terms(asks, spaces)
    rows, where = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.zeros(len(rows))
    np.add.at(weight, where, np.repeat([ask.idf for ask in asks], [len(ids) for ids in found]))
    return _first(rows[np.lexsort((-rows, -weight.round(6)))], spaces, limit)


def _looked_up(question: LexicalQuery) -> list[QueryTerm]:
    """Return the rarest terms whose rows together number at most MAX_PROPOSED.

    The first term may exceed this alone.
    """
    asks: list[QueryTerm] = []
    room = postings.MAX_PROPOSED
    for ask, count in zip(question.asked, question.counts, strict=True):
        if not count or (asks and count > room):
            break  # terms without rows are last
        asks.append(ask)
        room -= count
    return asks


def _first(rows: postings.RowIds, spaces: Sequence[uuid.UUID], limit: int) -> list[str]:
    """Return the first `limit` exchanges in `spaces`.

    Rows are looked up in growing batches, because most users can read most of them.
    """
    taken: list[str] = []
    start, together = 0, 2 * limit
    while start < len(rows) and len(taken) < limit:
        taken += postings.exchange_ids_in_spaces(spaces, rows[start : start + together])
        start, together = start + together, 4 * together
    return taken[:limit]

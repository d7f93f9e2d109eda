"""Lexical candidates: exchanges with the query's terms, proposed by the database in a bounded number."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memory.lexical import postings
from memory.lexical.analyser import query_terms
from memory.lexical.bm25 import QueryTerm, idf
from memory.models import Exchange

# Limits for a long message: look up its longest words, and search the rarest of these. They carry its subject.
_MAX_COUNTED_TERMS = 48
_MAX_QUERY_TERMS = 24
# Rows among which those of other authors are looked for, so that nobody makes the searches of others slow.
_MAX_ROWS_BY_OTHERS = 2_000


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """An analysed query.

    `terms` holds the weighted terms and `counts` the number of rows that contain each. `mean_length` is the reference
    length for BM25. `unseen_idf` is the weight of a term that no row contains.
    """

    terms: tuple[QueryTerm, ...]
    counts: tuple[int, ...]
    mean_length: float
    unseen_idf: float


def build_lexical_query(text: str, spaces: Iterable[uuid.UUID]) -> LexicalQuery:
    """Return the analysed `text` with term variants found in `spaces` and weights, rarest terms first."""
    terms = query_terms(text)
    if len(terms) > _MAX_COUNTED_TERMS:
        longest = sorted(terms, key=len, reverse=True)[:_MAX_COUNTED_TERMS]
        terms = {term: terms[term] for term in longest}
    weighted = postings.weigh_terms(terms, spaces)[:_MAX_QUERY_TERMS]
    return LexicalQuery(
        terms=tuple(query_term for query_term, _ in weighted),
        counts=tuple(count for _, count in weighted),
        mean_length=postings.statistics.mean_length,
        unseen_idf=idf(postings.statistics.documents, 0),
    )


def lexical_candidates(
    lexical_query: LexicalQuery, spaces: Sequence[uuid.UUID], limit: int, *, not_by: Sequence[uuid.UUID] = ()
) -> list[str]:
    """Return at most `limit` exchanges in `spaces` with the rarest terms, ordered by the total weight of their terms.

    Returns hexadecimal ids. Of exchanges with the same terms the newest come first. Terms are looked up while their
    rows together number at most MAX_PROPOSED. A more common term contributes to scores but proposes no candidates. What
    the authors `not_by` wrote is left out; then only a bounded number of rows is read.
    """
    query_terms = _rarest_terms(lexical_query)
    if not query_terms:
        return []
    if lexical_query.counts[0] > postings.MAX_PROPOSED:
        return _not_by(not_by, postings.newest_with_term(query_terms[0], spaces, limit))
    found = postings.rows_with_terms(query_terms, spaces)
    rows, positions = np.unique(np.concatenate(found), return_inverse=True)
    weights = np.zeros(len(rows))
    np.add.at(
        weights, positions, np.repeat([query_term.idf for query_term in query_terms], [len(ids) for ids in found])
    )
    ordered = rows[np.lexsort((-rows, -weights.round(6)))]
    return _first_in_spaces(ordered[:_MAX_ROWS_BY_OTHERS] if not_by else ordered, spaces, limit, not_by)


def _rarest_terms(lexical_query: LexicalQuery) -> list[QueryTerm]:
    """Return the rarest terms whose rows together number at most MAX_PROPOSED.

    The first term may exceed this alone.
    """
    query_terms: list[QueryTerm] = []
    remaining = postings.MAX_PROPOSED
    for query_term, count in zip(lexical_query.terms, lexical_query.counts, strict=True):
        if not count or (query_terms and count > remaining):
            break  # terms without rows are last
        query_terms.append(query_term)
        remaining -= count
    return query_terms


def _first_in_spaces(
    rows: postings.RowIds, spaces: Sequence[uuid.UUID], limit: int, not_by: Sequence[uuid.UUID]
) -> list[str]:
    """Return the first `limit` exchanges in `spaces` by other authors than `not_by`.

    Rows are looked up in growing batches, because most users can read most of them.
    """
    found: list[str] = []
    start, batch_size = 0, 2 * limit
    while start < len(rows) and len(found) < limit:
        found += _not_by(not_by, postings.exchange_ids_in_spaces(spaces, rows[start : start + batch_size]))
        start, batch_size = start + batch_size, 4 * batch_size
    return found[:limit]


def _not_by(authors: Sequence[uuid.UUID], ids: Sequence[str]) -> list[str]:
    """Return those of these exchanges (hexadecimal ids) that none of the authors wrote."""
    if not authors:
        return list(ids)
    theirs = Exchange.objects.filter(id__in=[uuid.UUID(id) for id in ids], owner_id__in=authors)
    excluded = {id.hex for id in theirs.values_list("id", flat=True)}
    return [id for id in ids if id not in excluded]

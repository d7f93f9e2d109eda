"""First retrieval stage: collect candidates by vector and by term, and read them from SQL with their neighbours."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.errors import VectorStoreUnavailableError
from memory.filters import Filter, to_chroma, without_phrases
from memory.filters.selectivity import ids_if_selective
from memory.lexical import bm25
from memory.lexical.analyser import date_terms
from memory.lexical.candidates import LexicalQuery, build_lexical_query, lexical_candidates
from memory.retrieval.candidate_rows import CandidateLoader, CandidateRow, filter_ids, spaces_with_other_authors
from memory.retrieval.levels import level_of
from memory.retrieval.rare_words import rarities
from memory.retrieval.repetition import repeats
from memory.retrieval.types import Query
from memory.retrieval.vector_search import SimilarityById, exact_similarities, nearest, search_async

log = logging.getLogger(__name__)

# Minimum length of each candidate list. The length is at least twice `Query.limit`, and doubles again with a filter.
VECTOR_CANDIDATES = 80
LEXICAL_CANDIDATES = 40
# Number of nearest exchanges with a known similarity, although not all are read. Lexical candidates and neighbours use
# these similarities.
NEAREST = 150
# Fetch up to this many extra hits to replace excluded ones. The gate needs the 60 nearest.
_MAX_REPLACED = 70
# If fewer than this many of the nearest are by other authors, query for other authors separately. So many authors are
# left out if they repeat the question.
_MIN_BY_OTHER_AUTHORS = 15
_MAX_REPEATING_AUTHORS = 20
# The share of the query's terms, by their weight, that an exchange has that repeats the question.
_REPEATED_SHARE = 0.8
# Compute exact similarities when at most this many exchanges can match a filter.
MAX_EXACT = 200


@dataclass(slots=True)
class Candidate(CandidateRow):
    """An exchange considered for ranking.

    `similarity` is None unless the exchange is among the nearest. `ranks` holds its rank in each list. The stages set
    `score` and `lexical_score`, which is from 0 to 1. `has_question`: it has nearly all terms of the query, however long it
    is. `text_terms` holds the distinct terms of the exchange, without the date terms that come first in `terms`.
    """

    similarity: float | None = None
    ranks: dict[str, int] = field(default_factory=dict)
    score: float = 0.0
    lexical_score: float = 0.0
    has_question: bool = False
    is_pinned: bool = False
    text_terms: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.text_terms = frozenset(self.terms.split()[len(date_terms(self.timestamp)) :])


@dataclass
class CandidatePool:
    """The candidates of a query, its analysed terms, and the neighbours of the candidates.

    `similarity_by_id` holds the nearest exchanges, more than `candidates` contains. `neighbours` holds neighbours that
    are not candidates. `is_lexical_only` is True if the index could not be queried. `collections` are the names of the
    searched collections, by id.
    """

    query: Query
    lexical_query: LexicalQuery
    candidates: list[Candidate]
    neighbours: list[CandidateRow]
    similarity_by_id: SimilarityById
    is_lexical_only: bool
    collections: Mapping[int, str]

    @property
    def similarities(self) -> list[float]:
        """Return the known similarities of the candidates, highest first."""
        return sorted((c.similarity for c in self.candidates if c.similarity is not None), reverse=True)

    @property
    def rows(self) -> list[CandidateRow]:
        """Return the candidates, followed by their neighbours."""
        return [*self.candidates, *self.neighbours]

    @cached_property
    def term_frequencies(self) -> bm25.Numbers:
        """Return the frequency of each query term in each of `rows`, shape (rows, terms)."""
        return bm25.term_frequencies(self.lexical_query.terms, [row.terms for row in self.rows])

    @cached_property
    def rarities(self) -> bm25.Numbers:
        """Return how rare each query term is in its language, from 0 to 1, shape (terms,); 0 without vectors.

        Both the word and the term must be rare: "fraudulent" may be searched as "frau", which is common.
        """
        terms = self.lexical_query.terms
        if self.is_lexical_only:
            return np.zeros(len(terms))
        forms = [*(query_term.word for query_term in terms), *(query_term.term for query_term in terms)]
        both: bm25.Numbers = rarities(forms, self.query.get_log_probabilities).reshape(2, -1).min(axis=0)
        return both


def gather_candidates(query: Query) -> CandidatePool:
    """Collect exchanges that are similar or share rare terms, limited to the readable spaces.

    SQL decides about every candidate. Without a vector, or if the index does not answer, only lexical candidates
    remain.
    """
    factor = 1 if query.filters is None else 2
    excluded = min(len(query.exclude), _MAX_REPLACED)
    vector_count = factor * max(VECTOR_CANDIDATES, 2 * query.limit) + excluded
    lexical_count = factor * max(LEXICAL_CANDIDATES, 2 * query.limit)
    known_count = max(NEAREST + excluded, vector_count)
    pending = search_async(query, known_count)
    # Run the lexical query while the query is being embedded and the index works.
    lexical_query = build_lexical_query(query.text, query.spaces)
    lexical_ids = _drop_excluded(query, lexical_candidates(lexical_query, list(query.spaces), lexical_count))
    loader = CandidateLoader(query.spaces, query.generation.pk)
    loader.read(lexical_ids)
    similar, is_lexical_only = _vector_hits(query, pending.wait)
    candidates = _build_candidates(query, lexical_ids, similar, vector_count, loader)
    # Too few candidates show that the filter is narrow. For a broad filter the unfiltered nearest are enough.
    if query.filters is not None and not is_lexical_only and len(candidates) < 3 * query.limit:
        search = partial(_filtered_vector_hits, query, query.filters, known_count, similar)
        similar, is_lexical_only = _vector_hits(query, search)
        candidates = _build_candidates(query, lexical_ids, similar, vector_count, loader)
    if query.limits_sources and len(similar) > vector_count:
        near, ids_by_others = _by_other_authors(query, candidates, lexical_query, lexical_count)
        if ids_by_others:
            similar = similar | near
            lexical_ids = lexical_ids | _drop_excluded(query, ids_by_others)
            candidates = _build_candidates(query, lexical_ids, similar, vector_count, loader)
    candidate_ids = {c.id for c in candidates}
    neighbours = [row for id, row in loader.rows.items() if id not in candidate_ids]
    collections = {search.key: search.name for search in pending.searches}
    return CandidatePool(query, lexical_query, candidates, neighbours, similar, is_lexical_only, collections)


def _filtered_vector_hits(query: Query, filters: Filter, count: int, unfiltered: SimilarityById) -> SimilarityById:
    """Return the nearest exchanges that match `filters`, or `unfiltered` if Chroma cannot express the filter.

    Few matches are compared exactly; for many matches the index applies the filter. Chroma filters while it traverses
    the whole graph. For 15 matches of 27,000 this takes eight times as long as fetching their vectors. For 200 matches
    of 270,000 it takes eighteen times as long.
    """
    ids = ids_if_selective(filters, MAX_EXACT)
    if ids is not None:
        return exact_similarities(query, filter_ids((id.hex for id in ids), filters), count)
    stored = without_phrases(filters)
    where = to_chroma(stored) if stored else None
    return unfiltered if where is None else nearest(query, count, where)


def _by_other_authors(
    query: Query, candidates: Sequence[Candidate], lexical_query: LexicalQuery, lexical_count: int
) -> tuple[SimilarityById, set[str]]:
    """Return exchanges of other authors if one author dominates `candidates`; otherwise nothing.

    These are the nearest ones with their similarities, and the ids of these and of the lexical candidates. An author
    dominates if nearly all candidates are theirs and even the last one is relevant by itself. Several authors
    do if nearly all candidates repeat the question, too. Only spaces that contain other authors are queried.
    """
    found = [c for c in candidates if c.similarity is not None]
    authors = _dominating_authors(found)
    if not authors or (len(authors) > 1 and not _repeat_question(query, found)):
        return {}, set()
    last = sorted((c.similarity or 0.0 for c in found), reverse=True)[:VECTOR_CANDIDATES][-1]
    if last < level_of(query.generation.provider, query.generation.model).similarity:
        return {}, set()
    spaces = spaces_with_other_authors(query.spaces, authors)
    if not spaces:
        return {}, set()
    not_by_authors: dict[str, Any] = {"owner": {"$nin": [str(author) for author in authors]}}
    filter_of_query = to_chroma(query.filters) if query.filters is not None else None
    where = {"$and": [filter_of_query, not_by_authors]} if filter_of_query else not_by_authors
    try:
        near = nearest(replace(query, spaces=spaces), 2 * _MIN_BY_OTHER_AUTHORS, where)
    except VectorStoreUnavailableError as error:
        log.warning("the vector store could not be searched for other authors: %s", error)
        near = {}
    return near, {*near, *lexical_candidates(lexical_query, list(spaces), lexical_count, not_by=authors)}


def _dominating_authors(candidates: Sequence[Candidate]) -> list[uuid.UUID]:
    """Return the fewest authors who have nearly all candidates; [] if these are too many."""
    others, authors = len(candidates), []
    for author, count in Counter(candidate.owner_id for candidate in candidates).most_common(_MAX_REPEATING_AUTHORS):
        authors.append(uuid.UUID(author))
        others -= count
        if others < _MIN_BY_OTHER_AUTHORS:
            return authors
    return []


def _repeat_question(query: Query, candidates: Sequence[Candidate]) -> bool:
    """Return whether nearly all candidates repeat the question."""
    is_repetition = repeats(query.text)
    return sum(not is_repetition(candidate.terms) for candidate in candidates) < _MIN_BY_OTHER_AUTHORS


def have_question(lexical_query: LexicalQuery, contains: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which exchanges have nearly all terms of the query, from which ones each `contains`, shape (n, terms)."""
    idfs = np.array([query_term.idf for query_term in lexical_query.terms])
    result: NDArray[np.bool_] = (contains @ idfs >= _REPEATED_SHARE * idfs.sum()) & bool(len(idfs))
    return result


def _vector_hits(query: Query, search: Callable[[], SimilarityById]) -> tuple[SimilarityById, bool]:
    """Return the result of `search` and False; nothing and True if the search is lexical only."""
    if query.vector is None:
        return {}, True
    try:
        return search(), False
    except VectorStoreUnavailableError as error:
        log.warning("the vector store could not be searched, the search is lexical only: %s", error)
        return {}, True


def _drop_excluded(query: Query, ids: Iterable[str]) -> set[str]:
    """Return the ids that are not excluded and match the filter. Readability is checked later, when the rows are read."""
    remaining = set(ids) - {id.hex for id in query.exclude}
    return remaining if query.filters is None else filter_ids(remaining, query.filters)


def _build_candidates(
    query: Query, lexical_ids: set[str], similar: SimilarityById, count: int, loader: CandidateLoader
) -> list[Candidate]:
    """Build candidates from the lexical hits, the nearest `count` and the pinned exchanges.

    Excluded exchanges and those that do not match the filter are dropped.
    """
    pinned = {id.hex for id in query.pinned}
    ids = lexical_ids | _drop_excluded(query, {*islice(similar, count), *pinned} - lexical_ids)
    loader.read(ids)
    candidates = [
        Candidate(
            row.id,
            row.previous_id,
            row.terms,
            row.session_id,
            row.timestamp,
            row.owner_id,
            row.document,
            row.vectors,
            row.version,
            row.collection_id,
            similarity=similar[row.id].best if row.id in similar else None,
            is_pinned=row.id in pinned,
        )
        for row in (loader.rows[id] for id in ids & loader.rows.keys())
    ]
    nearest_first = sorted(
        (c for c in candidates if c.similarity is not None), key=lambda c: (-(c.similarity or 0), c.id)
    )
    for rank, candidate in enumerate(nearest_first, start=1):
        candidate.ranks["meaning"] = rank
    return candidates

"""The first stage: what meaning and words propose, read from SQL with what was said right before and after."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

from memory.errors import VectorStoreUnavailableError
from memory.filters import Filter, to_chroma
from memory.filters.selectivity import ids_if_selective
from memory.lexical import bm25
from memory.lexical.analyser import date_terms
from memory.lexical.candidates import LexicalQuery, build_lexical_query, lexical_candidates
from memory.retrieval.candidate_rows import CandidateLoader, CandidateRow, filter_ids, spaces_with_other_authors
from memory.retrieval.levels import level_of
from memory.retrieval.types import Query
from memory.retrieval.vector_search import SimilarityById, exact_similarities, nearest, search_async

log = logging.getLogger(__name__)

# Each list is at least this long, and twice as long as what is wanted, both twice for a filter.
BY_MEANING = 80
BY_WORDS = 40
# How near so many are is known, though not all of them are read: it counts for what words propose, and for neighbours.
NEAREST = 150
# So many of those that must not come back are made up for: the gate looks at the nearest sixty.
_MADE_UP_FOR = 70
# With fewer by other people among the nearest, theirs are asked for by themselves.
_ENOUGH_BY_OTHERS = 15
# So many that may fulfil a filter are weighed one by one.
FEW = 200


@dataclass(slots=True)
class Candidate(CandidateRow):
    """An exchange in the running.

    `similarity` is None unless it was among the nearest, `ranks` says at which place of which list it stood, `score` and
    `words` (what its words say, from 0 to 1) are set by the stages. `said` are the different terms of its texts, without
    those of its date, which stand first.
    """

    similarity: float | None = None
    ranks: dict[str, int] = field(default_factory=dict)
    score: float = 0.0
    words: float = 0.0
    is_pinned: bool = False
    said: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.said = frozenset(self.terms.split()[len(date_terms(self.timestamp)) :])


@dataclass
class CandidatePool:
    """The candidates of a query, the terms it asks for, and what was said beside them.

    `near` says how similar the nearest are, which are more than are candidates, `similarities` those of the candidates
    among them, highest first; `beside` are exchanges that are no candidates but were said before or after one;
    `by_words_alone`: the index could not be asked.
    """

    query: Query
    question: LexicalQuery
    candidates: list[Candidate]
    beside: list[CandidateRow]
    near: SimilarityById
    by_words_alone: bool

    @property
    def similarities(self) -> list[float]:
        return sorted((c.similarity for c in self.candidates if c.similarity is not None), reverse=True)

    @property
    def everything(self) -> list[CandidateRow]:
        """The candidates, then what was said beside them."""
        return [*self.candidates, *self.beside]

    @cached_property
    def held(self) -> bm25.Numbers:
        """How often each of `everything` holds each term that is asked."""
        return bm25.frequencies(self.question.asked, [row.terms for row in self.everything])


def gather_candidates(query: Query) -> CandidatePool:
    """What is near in meaning and what shares rare words, in the spaces that may be read; SQL decides on every one.

    Without a vector, and where the index does not answer, words alone propose.
    """
    longer = 1 if query.filters is None else 2
    excluded = min(len(query.exclude), _MADE_UP_FOR)
    by_meaning = longer * max(BY_MEANING, 2 * query.wanted) + excluded
    by_words = longer * max(BY_WORDS, 2 * query.wanted)
    nearest_known = max(NEAREST + excluded, by_meaning)
    by_index = search_async(query, nearest_known)
    # All that words can say by themselves is asked for while the question is being embedded and the index works.
    asked = build_lexical_query(query.text, query.spaces)
    sharing = _drop_excluded(query, lexical_candidates(asked, list(query.spaces), by_words))
    reader = CandidateLoader(query.spaces)
    reader.read(sharing)
    near, alone = _near(query, by_index.found)
    candidates = _candidates(query, sharing, near, by_meaning, reader)
    # That too few are left says that the filter is not a broad one, for which the nearest of all are enough.
    if query.filters is not None and not alone and len(candidates) < 3 * query.wanted:
        near, alone = _near(query, partial(_passing, query, query.filters, nearest_known, near))
        candidates = _candidates(query, sharing, near, by_meaning, reader)
    if query.is_spread and len(near) > by_meaning and (by_others := _by_others(query, candidates)):
        near = near | by_others
        candidates = _candidates(query, sharing | _drop_excluded(query, by_others), near, by_meaning, reader)
    here = {c.id for c in candidates}
    return CandidatePool(
        query, asked, candidates, [row for id, row in reader.rows.items() if id not in here], near, alone
    )


def _passing(query: Query, filters: Filter, count: int, of_all: SimilarityById) -> SimilarityById:
    """The nearest of those that fulfil `filters`: few are weighed each, of many the index finds them, if it can be told.

    To filter, the index leaves out what does not fulfil it on its way through all: that takes it eight times as long
    as handing out the vectors of what does, where these are 15 of 27,000, eighteen times where they are 200 of 270,000.
    """
    ids = ids_if_selective(filters, FEW)
    if ids is not None:
        return exact_similarities(query, filter_ids((id.hex for id in ids), filters), count)
    where = to_chroma(filters)
    return of_all if where is None else nearest(query, count, where)


def _by_others(query: Query, candidates: Sequence[Candidate]) -> SimilarityById:
    """The nearest that other people wrote, where one author's volume may have kept theirs out of `candidates`.

    That is so where nearly all of these are by one author and even the last of them is relevant by itself. Only spaces
    that hold something by others are asked.
    """
    found = [c for c in candidates if c.similarity is not None]
    authors = Counter(c.owner_id for c in found)
    (author, count), *_ = authors.most_common(1) or [("", 0)]
    if not count or len(found) - count >= _ENOUGH_BY_OTHERS:
        return {}
    last = sorted((c.similarity or 0.0 for c in found), reverse=True)[:BY_MEANING][-1]
    if last < level_of(query.generation.provider, query.generation.model).similarity:
        return {}
    spaces = spaces_with_other_authors(query.spaces, uuid.UUID(author))
    not_by_author: dict[str, Any] = {"owner": {"$ne": str(uuid.UUID(author))}}
    asked = to_chroma(query.filters) if query.filters is not None else None
    where = {"$and": [asked, not_by_author]} if asked else not_by_author
    try:
        return nearest(replace(query, spaces=spaces), 2 * _ENOUGH_BY_OTHERS, where) if spaces else {}
    except VectorStoreUnavailableError as error:
        log.warning("the index could not be asked for other authors: %s", error)
        return {}


def _near(query: Query, ask: Callable[[], SimilarityById]) -> tuple[SimilarityById, bool]:
    if query.vector is None:
        return {}, True
    try:
        return ask(), False
    except VectorStoreUnavailableError as error:
        log.warning("the index cannot be asked, words alone find: %s", error)
        return {}, True


def _drop_excluded(query: Query, ids: Iterable[str]) -> set[str]:
    """Those that may come back and fulfil the filter; whether they may be read is asked when they are."""
    left = set(ids) - {id.hex for id in query.exclude}
    return left if query.filters is None else filter_ids(left, query.filters)


def _candidates(
    query: Query, sharing: set[str], near: SimilarityById, count: int, reader: CandidateLoader
) -> list[Candidate]:
    """What shares words, the nearest `count` and what the asker has pinned, where the question lets them in."""
    pinned = {id.hex for id in query.pinned}
    ids = sharing | _drop_excluded(query, {*islice(near, count), *pinned} - sharing)
    reader.read(ids)
    candidates = [
        Candidate(
            row.id,
            row.previous_id,
            row.terms,
            row.session_id,
            row.timestamp,
            row.owner_id,
            row.document,
            similarity=near[row.id].best if row.id in near else None,
            is_pinned=row.id in pinned,
        )
        for row in (reader.rows[id] for id in ids & reader.rows.keys())
    ]
    nearest_first = sorted(
        (c for c in candidates if c.similarity is not None), key=lambda c: (-(c.similarity or 0), c.id)
    )
    for rank, candidate in enumerate(nearest_first, start=1):
        candidate.ranks["meaning"] = rank
    return candidates

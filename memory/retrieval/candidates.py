"""The first stage: what meaning and words propose, read from SQL with what was said right before and after."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from memory.errors import StoreDown
from memory.filters import to_chroma
from memory.lexical.proposals import Question, proposed, question
from memory.retrieval import rows
from memory.retrieval.results import Query
from memory.retrieval.rows import Beside, Row
from memory.retrieval.semantic import nearest

log = logging.getLogger(__name__)

# Each list is at least this long, and three times as long as what is wanted. Measured: twice as many found no more.
BY_MEANING = 150
BY_WORDS = 100


@dataclass(slots=True)
class Candidate(Row):
    """An exchange in the running.

    `similarity` is None unless it was among the nearest, `ranks` says at which place of which list it stood, `score` and
    `words` (what its words say, from 0 to 1) are set by the stages.
    """

    similarity: float | None = None
    ranks: dict[str, int] = field(default_factory=dict)
    score: float = 0.0
    words: float = 0.0
    is_pinned: bool = False


@dataclass(slots=True)
class Pool:
    """The candidates of a query, the terms it asks for, and what was said beside them.

    `near` has the similarity of what is nearest, `similarities` those of the candidates among them, highest first;
    `beside` are exchanges that are no candidates but were said before or after one; `by_words_alone`: the index could
    not be asked.
    """

    query: Query
    question: Question
    candidates: list[Candidate]
    beside: list[Beside]
    near: dict[str, float]
    by_words_alone: bool

    @property
    def similarities(self) -> list[float]:
        return sorted((c.similarity for c in self.candidates if c.similarity is not None), reverse=True)


def gather(query: Query) -> Pool:
    """What is near in meaning and what shares rare words, in the spaces that may be read; SQL decides on every one.

    Without a vector, and where the index does not answer, words alone propose.
    """
    asked = question(query.text)
    by_words = rows.by_words(proposed(asked, list(query.spaces), max(BY_WORDS, 3 * query.wanted)), query.spaces)
    near, alone = _near(query)
    candidates = _candidates(query, near, by_words)
    where = to_chroma(query.filters) if query.filters and len(candidates) < 3 * query.wanted else None
    if where is not None and not alone:
        # A broad filter is cheaper in SQL, a narrow one in the index; that too few are left says which it is.
        near, alone = _near(query, where)
        candidates = _candidates(query, near, by_words)
    return Pool(query, asked, candidates, _beside(candidates, query), near, alone)


def _near(query: Query, where: dict[str, Any] | None = None) -> tuple[dict[str, float], bool]:
    if query.vector is None:
        return {}, True
    try:
        return nearest(query, max(BY_MEANING, 3 * query.wanted), where), False
    except StoreDown as error:
        log.warning("the index cannot be asked, words alone find: %s", error)
        return {}, True


def _candidates(query: Query, near: dict[str, float], by_words: list[Row]) -> list[Candidate]:
    pinned, excluded = {id.hex for id in query.pinned}, {id.hex for id in query.exclude}
    known = {row.id: row for row in by_words}
    known |= {row.id: row for row in rows.by_id((near.keys() | pinned) - known.keys(), query.spaces)}
    ids = known.keys() - excluded
    if query.filters is not None:
        ids = rows.passing(ids, query.filters)
    found = [
        Candidate(
            row.id, row.previous_id, row.terms, row.session_id, row.timestamp, near.get(row.id), is_pinned=id in pinned
        )
        for id, row in known.items()
        if id in ids
    ]
    nearest_first = sorted((c for c in found if c.similarity is not None), key=lambda c: (-(c.similarity or 0), c.id))
    for rank, candidate in enumerate(nearest_first, start=1):
        candidate.ranks["meaning"] = rank
    return found


def _beside(candidates: list[Candidate], query: Query) -> list[Beside]:
    here = {c.id for c in candidates}
    before = {c.previous_id for c in candidates if c.previous_id} - here
    found = rows.said_before(before, query.spaces) + rows.said_after(here, query.spaces)
    return [row for row in found if row.id not in here]

"""The queries and hits of retrieval, as frozen data classes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from memory.documents.locations import ChunkLocation
from memory.filters import Filter
from memory.models import Exchange, IndexGeneration
from memory.retrieval.probes import MessageTraits
from memory.spaces.access import SpaceIds


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """An exchange as it is shown to readers; `previous_id` is the one before it in its session or document.

    `statement_state` is that of the statement whose text it is, "" for any other exchange.
    """

    id: uuid.UUID
    space_id: uuid.UUID
    owner_id: uuid.UUID
    owner_name: str
    thread_id: uuid.UUID | None
    session_id: uuid.UUID | None
    turn_id: uuid.UUID | None
    user_message: str
    assistant_message: str
    timestamp: datetime
    source: str
    source_file: str
    location: ChunkLocation | None = None
    previous_id: uuid.UUID | None = None
    statement_state: str = ""

    # Load only these columns; a row has more than twice as many.
    COLUMNS: ClassVar = (
        "space", "owner__name", "thread_id", "session_id", "turn_id", "user_message", "assistant_message", "timestamp",
        "source", "source_file", "previous", "statement__state",
    )  # fmt: skip

    @classmethod
    def from_row(cls, row: Exchange, location: ChunkLocation | None = None) -> ExchangeView:
        """Build a view from an exchange loaded with its owner and its statement, and its location in a document."""
        return cls(
            id=row.id,
            space_id=row.space_id,
            owner_id=row.owner_id,
            owner_name=str(row.owner),
            thread_id=row.thread_id,
            session_id=row.session_id,
            turn_id=row.turn_id,
            user_message=row.user_message,
            assistant_message=row.assistant_message,
            timestamp=row.timestamp,
            source=row.source,
            source_file=row.source_file,
            location=location,
            previous_id=row.previous_id,
            statement_state=row.statement.state if row.source == Exchange.Source.KNOWLEDGE else "",
        )


class SubjectOrder(Enum):
    """The order of messages on one subject: for a question about the present, about a former state, or about a date.

    CHRONOLOGICAL is for a broad question, and concerns all hits.
    """

    LATER_FIRST = "later first"
    EARLIER_FIRST = "earlier first"
    BY_SCORE = "by score"
    CHRONOLOGICAL = "chronological"


@dataclass(frozen=True, slots=True)
class Hit:
    """An exchange found by a search, with the reason.

    `similarity`, in [-1, 1], is None if only terms matched. `score` is the value that the strategy ranks by. `ranks`
    holds the ranks, from 1, in the lists "meaning" and "words". `is_below_gate` is True if automatic recall would drop
    it. `related` are other hits whose messages are on the same subject. `later` is the latest hit on it, None if this hit
    is the latest or the only one; `is_superseded`: a person decided that a later message supersedes this one.
    """

    exchange: ExchangeView
    similarity: float | None
    score: float
    strategy: str
    explanation: str
    is_below_gate: bool
    ranks: Mapping[str, int] = field(default_factory=dict)
    related: frozenset[uuid.UUID] = field(default=frozenset())
    later: uuid.UUID | None = None
    is_superseded: bool = False


def listed_hit(exchange: ExchangeView, strategy: str, explanation: str = "") -> Hit:
    """Return a hit for an exchange that was not found by its text; it has no similarity and no score."""
    return Hit(exchange, None, 0.0, strategy, explanation, is_below_gate=False)


@dataclass(frozen=True, slots=True)
class Query:
    """The input of a strategy.

    `get_vector` waits for the vector and returns None if the embedding model does not answer or, if the query is not
    `is_embedded`, may not receive the text; then only terms are searched. The vector is compared with the index of
    `generation`, even if another generation becomes active meanwhile. `conversation_length` is a number of messages, 0
    outside a conversation.

    `get_traits` returns the traits of the newest message, or None if they are unknown. `has_context`: messages before it
    are known, on which a follow-up can depend.

    `get_log_probabilities` returns the natural logarithms of the probabilities of words, None if the model has none.

    `exclude` is never returned and `pinned` is always a candidate. Near-duplicates are dropped unless `keep_duplicates`.
    With `limits_sources`, the share of one author or document is limited while other hits pass the gate.
    """

    text: str
    get_vector: Callable[[], NDArray[np.float32] | None]
    generation: IndexGeneration
    spaces: SpaceIds
    limit: int
    now: datetime
    exclude: frozenset[uuid.UUID] = field(default=frozenset())
    pinned: frozenset[uuid.UUID] = field(default=frozenset())
    conversation_length: int = 0
    filters: Filter | None = None
    keep_duplicates: bool = False
    limits_sources: bool = False
    get_traits: Callable[[], MessageTraits | None] = field(default=lambda: None)
    has_context: bool = False
    get_log_probabilities: Callable[[Sequence[str]], list[float] | None] = field(default=lambda words: None)
    is_embedded: bool = True

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """Return the vector of the text, waiting for it if necessary."""
        return self.get_vector()

    @property
    def traits(self) -> MessageTraits | None:
        """Return the traits of the newest message, waiting for its vector if necessary."""
        return self.get_traits()


@dataclass(frozen=True, slots=True)
class RankedHits:
    """The hits of a strategy, best first.

    `is_lexical_only`: the index could not be queried. `is_stale`: hits are missing because they were forgotten or
    replaced by another version before their text was read. `subject_order` is the order of hits on one subject that the
    query asks for.
    """

    results: list[Hit]
    is_lexical_only: bool = False
    is_stale: bool = False
    subject_order: SubjectOrder = SubjectOrder.LATER_FIRST


Strategy = Callable[[Query], RankedHits]

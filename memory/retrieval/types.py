"""What a search asks and what it gives: plain frozen rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from memory.documents.locations import ChunkLocation
from memory.filters import Filter
from memory.models import Exchange, Generation
from memory.spaces.access import SpaceIds


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """An exchange as readers get it."""

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
    place: ChunkLocation | None = None

    # What is read of an exchange for this; a row has more than twice as many columns.
    COLUMNS: ClassVar = (
        "space", "owner__name", "thread_id", "session_id", "turn_id", "user_message", "assistant_message", "timestamp",
        "source", "source_file",
    )  # fmt: skip

    @classmethod
    def from_row(cls, row: Exchange, place: ChunkLocation | None = None) -> ExchangeView:
        """From an exchange loaded with its owner, and where it stands in a document."""
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
            place=place,
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """One exchange found, and why.

    `similarity` in [-1, 1] is None where only words matched; `score` is what the strategy ranks by; `ranks` says at
    which place the exchange stood in each list it was in ("meaning", "words"), from 1; `is_below_gate` that it would
    not come back by itself.
    """

    exchange: ExchangeView
    similarity: float | None
    score: float
    strategy: str
    reason: str
    is_below_gate: bool
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """What a strategy is asked: a text and its vector, the spaces that may be read, and how many results are wanted.

    `embedded` gives the vector, once it is made; None where it cannot be had: then words alone find. It is held against
    the index of `generation`, whose model made it, also where another one begins to serve meanwhile.
    `conversation_length` is the number of messages of the conversation it is asked in, 0 outside of one. `exclude` never
    comes back; `pinned` is always in the running; of results that say the same one stays unless `keep_repeats`.
    `is_spread`: no author and no document takes more than its share of the results while others pass the gate.
    """

    text: str
    embedded: Callable[[], NDArray[np.float32] | None]
    generation: Generation
    spaces: SpaceIds
    wanted: int
    now: datetime
    exclude: frozenset[uuid.UUID] = field(default=frozenset())
    pinned: frozenset[uuid.UUID] = field(default=frozenset())
    conversation_length: int = 0
    filters: Filter | None = None
    keep_repeats: bool = False
    is_spread: bool = False

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The vector of the text, waited for."""
        return self.embedded()


@dataclass(frozen=True, slots=True)
class RankedHits:
    """What a strategy found, best first.

    `by_words_alone`: the index could not be asked. `is_stale`: some of it was forgotten or replaced by another version
    before its text was read, and is missing.
    """

    results: list[Hit]
    by_words_alone: bool = False
    is_stale: bool = False


Strategy = Callable[[Query], RankedHits]

"""Group hits into the passages that a prompt quotes.

Adjacent chunks of a document form one passage, which is widened as far as the token budget allows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from memory.documents.locations import LOCATION_COLUMNS, ChunkLocation
from memory.models import Chunk
from memory.retrieval.types import ExchangeView, Hit

# Maximum number of chunks added on each side. Text further away is usually about another subject.
_MAX_GAP = 2

ChunkKey = tuple[uuid.UUID, int]


@dataclass(frozen=True, slots=True)
class QuotedChunk:
    """The text of a chunk and its location."""

    location: ChunkLocation
    text: str


@dataclass(slots=True)
class Passage:
    """A quoted unit: one exchange, or adjacent chunks in document order. `number` counts from 1."""

    number: int
    exchange: ExchangeView
    chunks: list[QuotedChunk]

    @property
    def text(self) -> str:
        """Return the joined text of the chunks; text shared by neighbours appears once, and gaps are marked."""
        joined = ""
        for previous, chunk in zip([None, *self.chunks], self.chunks, strict=False):
            shared = max(0, previous.location.end - chunk.location.start) if previous else 0
            is_gap = previous is not None and chunk.location.index > previous.location.index + 1
            separator = "\n…\n" if is_gap else chunk.location.separator
            joined += (separator if previous and not shared else "") + chunk.text[shared:]
        return joined

    @property
    def label(self) -> str:
        """Return the location from the first to the last chunk: page, slide, sheet or heading."""
        labels = [chunk.location.label for chunk in self.chunks if chunk.location.label]
        if not labels:
            return ""
        return labels[0] if labels[0] == labels[-1] else f"{labels[0]} to {labels[-1]}"


def group_adjacent(results: Iterable[Hit]) -> list[list[Hit]]:
    """Group adjacent chunks of a document; the groups are ordered by the best hit of each."""
    groups: list[list[Hit]] = []
    for result in results:
        adjacent = [group for group in groups if _is_adjacent(result, group)]
        if not adjacent:
            groups.append([result])
            continue
        adjacent[0].append(result)
        for other in adjacent[1:]:  # the hit connects two groups
            adjacent[0].extend(other)
            groups.remove(other)
    return groups


def build_passages(results: Sequence[Hit]) -> list[Passage]:
    """Group the hits into passages, numbered from 1, without widening them."""
    groups = enumerate(group_adjacent(results), start=1)
    return [build_passage(number, [result.exchange for result in group]) for number, group in groups]


def build_passage(number: int, exchanges: Sequence[ExchangeView]) -> Passage:
    """Return the passage with this number that consists of one exchange, or of several chunks of a document."""
    chunks = [QuotedChunk(exchange.location, exchange.user_message) for exchange in exchanges if exchange.location]
    return Passage(number, exchanges[0], sorted(chunks, key=lambda chunk: chunk.location.index))


def load_neighbours(passages: Iterable[Passage]) -> dict[ChunkKey, QuotedChunk]:
    """Return the findable chunks around those of `passages`, by version and index."""
    condition = Q()
    for passage in passages:
        if passage.chunks:
            first, last = passage.chunks[0].location, passage.chunks[-1].location
            condition |= Q(version=first.version_id, index__range=(first.index - _MAX_GAP, last.index + _MAX_GAP))
    if not condition:
        return {}
    rows = Chunk.objects.filter(condition, exchange__forgotten_at=None, exchange__is_inactive=False)
    columns = (*LOCATION_COLUMNS, "exchange__user_message")
    chunks = [QuotedChunk(ChunkLocation(*row[:-1]), row[-1]) for row in rows.values_list(*columns)]
    return {(chunk.location.version_id, chunk.location.index): chunk for chunk in chunks}


def _is_adjacent(result: Hit, group: Sequence[Hit]) -> bool:
    location = result.exchange.location
    if location is None:
        return False
    keys = {(r.exchange.location.version_id, r.exchange.location.index) for r in group if r.exchange.location}
    return any((location.version_id, location.index + step) in keys for step in (-1, 1))

"""Passages: what a prompt quotes. Pieces of a document that lie side by side are one, as wide as the budget lets it be."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from memory.documents.locations import ChunkLocation
from memory.models import Chunk
from memory.retrieval.types import ExchangeView, Hit

# So many pieces on each side may be added; more is another subject as a rule.
_WIDEST = 2

ChunkKey = tuple[uuid.UUID, int]


@dataclass(frozen=True, slots=True)
class QuotedChunk:
    """A piece of a document's text and where it stands."""

    place: ChunkLocation
    text: str


@dataclass(slots=True)
class Passage:
    """What is quoted as one: an exchange, or pieces of a document in their order. `number` counts from 1."""

    number: int
    exchange: ExchangeView
    pieces: list[QuotedChunk]

    @property
    def text(self) -> str:
        """The pieces as one text; what neighbours share stands there once."""
        joined = ""
        for before, piece in zip([None, *self.pieces], self.pieces, strict=False):
            shared = max(0, before.place.end - piece.place.start) if before else 0
            joined += (piece.place.joint if before and not shared else "") + piece.text[shared:]
        return joined

    @property
    def label(self) -> str:
        """Where it stands, from its first piece to its last: page, slide, sheet or heading."""
        labels = [piece.place.label for piece in self.pieces if piece.place.label]
        if not labels:
            return ""
        return labels[0] if labels[0] == labels[-1] else f"{labels[0]} to {labels[-1]}"


def group_adjacent(results: Iterable[Hit]) -> list[list[Hit]]:
    """The results as passages, in the order of the best of each: neighbours in a document together."""
    groups: list[list[Hit]] = []
    for result in results:
        beside = [group for group in groups if _is_adjacent(result, group)]
        if not beside:
            groups.append([result])
            continue
        beside[0].append(result)
        for other in beside[1:]:  # it closes the gap between two
            beside[0].extend(other)
            groups.remove(other)
    return groups


def build_passages(results: Sequence[Hit]) -> list[Passage]:
    """The results as numbered passages, not widened."""
    return [_passage(number, group) for number, group in enumerate(group_adjacent(results), start=1)]


def load_neighbours(passages: Iterable[Passage]) -> dict[ChunkKey, QuotedChunk]:
    """The pieces around those of `passages` that may be quoted with them, by version and index."""
    around = Q(pk__in=[])
    for passage in passages:
        if passage.pieces:
            first, last = passage.pieces[0].place, passage.pieces[-1].place
            around |= Q(version=first.version_id, index__range=(first.index - _WIDEST, last.index + _WIDEST))
    rows = Chunk.objects.filter(around, exchange__forgotten_at=None, exchange__is_hidden=False)
    fields = ("version__document_id", "version_id", "index", "start", "end", "joint", "place", "exchange__user_message")
    pieces = [QuotedChunk(ChunkLocation(*row[:-1]), row[-1]) for row in rows.values_list(*fields)]
    return {(piece.place.version_id, piece.place.index): piece for piece in pieces}


def _is_adjacent(result: Hit, group: Sequence[Hit]) -> bool:
    place = result.exchange.place
    if place is None:
        return False
    spots = {(r.exchange.place.version_id, r.exchange.place.index) for r in group if r.exchange.place}
    return any((place.version_id, place.index + step) in spots for step in (-1, 1))


def _passage(number: int, group: Sequence[Hit]) -> Passage:
    pieces = [QuotedChunk(r.exchange.place, r.exchange.user_message) for r in group if r.exchange.place]
    return Passage(number, group[0].exchange, sorted(pieces, key=lambda piece: piece.place.index))

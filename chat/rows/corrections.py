"""Template rows of the sources that a message corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from chat.models import Turn
from chat.turns.corrections import corrected_sources
from memory.api import excerpt


@dataclass(frozen=True, slots=True)
class CorrectedSourceRow:
    """A source of the answer before, by its number there."""

    number: int
    excerpt: str
    is_superseded: bool


@dataclass(frozen=True, slots=True)
class CorrectionRow:
    """The offer to supersede sources, `number` that of the only one, else 0; `is_open` while none is superseded."""

    sources: Sequence[CorrectedSourceRow]
    number: int
    is_open: bool
    url: str


def correction_row(turn: Turn) -> CorrectionRow | None:
    """Return the offer for the author of this turn, None if there is nothing to offer."""
    sources = corrected_sources(turn) if turn.is_correction else []
    if not sources:
        return None
    rows = [
        CorrectedSourceRow(source.passage.number, excerpt(source.passage.message), source.is_superseded)
        for source in sources
    ]
    return CorrectionRow(
        sources=rows,
        number=rows[0].number if len(rows) == 1 else 0,
        is_open=not any(row.is_superseded for row in rows),
        url=reverse("correction", args=[turn.id]),
    )

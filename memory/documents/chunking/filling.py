"""Strategies that follow the structure of the text: fill a span with whole units until the next does not fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

from memory.documents.chunking.graphemes import is_border
from memory.documents.chunking.lengths import fits, length, reach, reach_back
from memory.documents.chunking.spans import ChunkSizes, Span, join_neighbours, next_nonblank, without_trailing_blank
from memory.documents.chunking.units import Unit, units
from memory.documents.chunking.windows import cut_at_word


def semantic(text: str, sizes: ChunkSizes) -> Iterator[Span]:
    """Yield spans of whole units up to `chunk_size`; indivisible units may reach `longest`."""
    filling = _SpanBuilder(text, sizes)
    for unit in units(text, sizes):
        filling.add(unit)
        yield from filling.take_completed()
    filling.close()
    yield from filling.take_completed()


def hybrid(text: str, sizes: ChunkSizes) -> Iterator[Span]:
    """Return semantic spans of at most `chunk_size`, with small neighbours merged, such as short sections."""
    spans = semantic(text, replace(sizes, longest=sizes.chunk_size))
    return join_neighbours(spans, lambda start, end: fits(text, start, end, sizes.chunk_size))


class _SpanBuilder:
    """The completed spans that were not taken yet, and the open one from `_start` to `_end`."""

    def __init__(self, text: str, sizes: ChunkSizes) -> None:
        self._text, self._sizes = text, sizes
        self._completed: list[Span] = []
        self._start = self._end = -1
        self._length = 0.0  # of the open span
        self._reserved_end = -1  # units that end here or before go into the open span unconditionally
        self._unit_starts: list[int] = []  # starts of the open span's sentences, rows and lines
        self._headings: list[Unit] = []  # the open span while it contains only headings

    def add(self, unit: Unit) -> None:
        """Add `unit` to the open span, or close that and open the next."""
        if unit.end <= self._reserved_end:
            self._take(unit)
        elif unit.is_heading:
            if not self._headings or not self._fits(unit.end, self._sizes.chunk_size):
                self._open(unit, until=unit.end)
            self._take(unit)
            self._headings.append(unit)
        elif self._headings:
            self._add_below_heading(unit)
        else:
            self._add_plain(unit)

    def close(self) -> None:
        """Complete the open span."""
        if self._start >= 0:
            self._completed.append(Span(self._start, self._end))
            self._start = -1

    def take_completed(self) -> list[Span]:
        """Return the spans that were completed since the last call."""
        completed, self._completed = self._completed, []
        return completed

    def _add_plain(self, unit: Unit) -> None:
        size = self._sizes.chunk_size
        for end in (*unit.whole, unit.paragraph_end, unit.end):
            if self._fits(end, size):
                return self._take(unit, reserved=end)
            if fits(self._text, unit.start, end, size):
                self._open(unit, until=end)
                return self._take(unit, reserved=end)
        self._open(unit, until=unit.end)
        return self._take(unit)

    def _add_below_heading(self, unit: Unit) -> None:
        """Add like `_add_plain`, but do not close the span after a heading; it may reach `longest`."""
        size, longest = self._sizes.chunk_size, self._sizes.longest
        for end in unit.whole:
            if self._fits(end, longest if fits(self._text, unit.start, end, size) else size):
                return self._take(unit, reserved=end)
        if self._fits(unit.paragraph_end, size):
            return self._take(unit, reserved=unit.paragraph_end)
        if self._fits(unit.end, longest):
            return self._take(unit)
        return self._cut_below_heading(unit)

    def _cut_below_heading(self, unit: Unit) -> None:
        """Put as much of `unit` below its headings as fits, or below only the last heading."""
        size, longest = self._sizes.chunk_size, self._sizes.longest
        at = -1
        if unit.start < reach(self._text, self._start, size):
            at = cut_at_word(self._text, self._start, unit.start, size, longest)
        if is_border(self._text, at, unit.start) and at > unit.start:
            self._end = without_trailing_blank(self._text, self._start, at)
            rest_start = next_nonblank(self._text, at, unit.end)
            self._open(unit._replace(start=rest_start, is_part=True), until=unit.end)
            return self._take(unit._replace(start=rest_start, is_part=True))
        if len(self._headings) > 1:
            *earlier, last = self._headings
            self._completed.append(Span(self._start, earlier[-1].end))
            self._start, self._unit_starts, self._headings = last.start, [last.start], [last]
            self._length = length(self._text, last.start, last.end)
            return self._add_below_heading(unit)
        self._headings = []
        return self._add_plain(unit)

    def _fits(self, end: int, size: int) -> bool:
        """Return True if the open span fits into `size` when it reaches `end`.

        Only the text behind it is measured: to measure all of it for each of many short lines would take seconds.
        """
        room = size - self._length
        return self._start >= 0 and end - self._end <= room and length(self._text, self._end, end) <= room

    def _open(self, unit: Unit, *, until: int) -> None:
        """Open the next span, which will reach `until`, with as much overlap as allowed."""
        overlap: list[int] = []
        if not unit.is_heading and not unit.is_part:
            earliest = max(
                reach_back(self._text, self._end, self._sizes.overlap),
                reach_back(self._text, until, self._sizes.chunk_size),
            )
            overlap = self._unit_starts[bisect_left(self._unit_starts, earliest) :]
        self.close()
        self._unit_starts = overlap
        self._start = self._end = overlap[0] if overlap else unit.start
        self._length, self._headings = 0.0, []

    def _take(self, unit: Unit, *, reserved: int = -1) -> None:
        self._length += length(self._text, self._end, unit.end)
        self._end = unit.end
        self._reserved_end = max(self._reserved_end, reserved)
        if not unit.is_part:
            self._unit_starts.append(unit.start)
        if not unit.is_heading:
            self._headings = []

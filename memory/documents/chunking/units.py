"""The smallest units that spans are filled with: headings, sentences, rows and lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory.documents.chunking.blocks import Block, BlockKind, blocks, lines
from memory.documents.chunking.lengths import fits
from memory.documents.chunking.sentences import sentences
from memory.documents.chunking.spans import ChunkSizes, Span, join_neighbours, next_nonblank, without_trailing_blank
from memory.documents.chunking.windows import cut_at_word


class Unit(NamedTuple):
    """One unit, without white space at its ends.

    `whole`: the ends of the list, item, table or fence that begin with it, outermost first. `paragraph_end`: the end of
    the paragraph that begins with it, or its own. `is_part`: it continues a sentence that had to be cut.
    """

    start: int
    end: int
    whole: tuple[int, ...]
    paragraph_end: int
    is_heading: bool
    is_part: bool


def units(text: str, sizes: ChunkSizes) -> Iterator[Unit]:
    """Yield the units of `text` in order, none longer than `sizes.longest`."""
    for block in blocks(text):
        start = next_nonblank(text, block.start, block.end)
        # A heading of more than half a span would leave no room for its text, so it is treated as a paragraph.
        if block.kind is BlockKind.HEADING and fits(text, start, block.end, sizes.chunk_size // 2):
            yield Unit(start, block.end, (), block.end, is_heading=True, is_part=False)
        else:
            yield from _units_of(text, block, sizes)


def _units_of(text: str, block: Block, sizes: ChunkSizes) -> Iterator[Unit]:
    lined = block.kind in (BlockKind.FENCE, BlockKind.TABLE)
    whole = (*block.whole, block.end) if lined else block.whole
    paragraph_end = block.end
    for leaf in (lines if lined else sentences)(text, block.start, block.end):
        for part, is_part in _split_long(text, leaf, sizes):
            yield Unit(part.start, part.end, whole, paragraph_end or part.end, is_heading=False, is_part=is_part)
            whole, paragraph_end = (), 0


def _split_long(text: str, leaf: Span, sizes: ChunkSizes) -> Iterator[tuple[Span, bool]]:
    """Yield `leaf`, or if it is too long its lines or their parts, with whether each continues a cut line."""
    is_whole = fits(text, leaf.start, leaf.end, sizes.longest)
    for line in [leaf] if is_whole else _join_lines(lines(text, leaf.start, leaf.end), sizes.chunk_size // 8):
        start = next_nonblank(text, line.start, line.end)
        stop = without_trailing_blank(text, start, line.end)
        limit, is_part = sizes.longest, False
        while not fits(text, start, stop, limit):
            at = cut_at_word(text, start, start, sizes.chunk_size, sizes.longest)
            yield Span(start, without_trailing_blank(text, start, at)), is_part
            start, limit, is_part = next_nonblank(text, at, stop), sizes.chunk_size, True
        if start < stop:
            yield Span(start, stop), is_part


def _join_lines(every: Iterable[Span], limit: int) -> Iterator[Span]:
    """Return lines, those that follow each other as one while they have at most `limit` characters.

    A unit takes as long as a sentence, and a list without marks can have a line for every few characters.
    """
    return join_neighbours(every, lambda start, end: end - start <= limit)

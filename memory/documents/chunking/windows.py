"""Strategies that split by length: truncate, and windows of fixed size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from memory.documents.chunking.graphemes import first_border, last_border
from memory.documents.chunking.lengths import reach, reach_back
from memory.documents.chunking.sentences import sentences
from memory.documents.chunking.spans import ChunkSizes, Span, next_nonblank, without_trailing_blank


def truncate(text: str, sizes: ChunkSizes) -> list[Span]:
    """Return one span of the first `chunk_size` characters after leading white space, none for a blank text."""
    start = next_nonblank(text, 0, len(text))
    if start == len(text):
        return []
    end = cut_anywhere(text, start, start, sizes.chunk_size, sizes.chunk_size)
    return [Span(start, without_trailing_blank(text, start, end))]


def fixed_size(text: str, sizes: ChunkSizes) -> Iterator[Span]:
    """Yield spans of `chunk_size`, shortened to a sentence (if requested) or word end in the second half."""
    ends = [sentence.end for sentence in sentences(text, 0, len(text))] if sizes.at_sentences else []
    last: Span | None = None
    new = next_nonblank(text, 0, len(text))
    while new < len(text):
        start = _start(text, new, last, sizes)
        end = _end(text, start, new, ends, sizes)
        last = Span(start, without_trailing_blank(text, start, end))
        yield last
        new = next_nonblank(text, end, len(text))


def cut_at_word(text: str, start: int, min_end: int, size: int, longest: int) -> int:
    """Return the end of a span from `start`, after `min_end`: before white space late in the window, or anywhere.

    `start` and `min_end` are borders, and `min_end` + 1 is within the window. Only the second half is searched, so that no
    span becomes very short.
    """
    last = min(reach(text, start, size), len(text))
    if last == len(text):
        return last
    for at in range(last, (max(start, min_end) + last) // 2, -1):
        if text[at].isspace():
            return at
    return cut_anywhere(text, start, min_end, size, longest)


def cut_anywhere(text: str, start: int, min_end: int, size: int, longest: int) -> int:
    """Return the last cluster border after `min_end` within `size` of `start`, or the first within `longest`."""
    last = min(reach(text, start, size), len(text))
    at = last_border(text, last, min_end)
    if at > min_end:
        return at
    limit = reach(text, start, longest)
    return min(first_border(text, last, min_end, limit), limit)


def _start(text: str, new: int, last: Span | None, sizes: ChunkSizes) -> int:
    """Return the start of the span for text from `new`: up to `overlap` characters back in the last span."""
    if last is None or not sizes.overlap:
        return new
    start = first_border(text, max(reach_back(text, last.end, sizes.overlap), last.start + 1), last.start, last.end)
    start = next_nonblank(text, start, last.end) if start < last.end else last.end
    limit = reach(text, start, sizes.chunk_size)
    has_room = first_border(text, new + 1, new, limit) <= limit
    return start if start < last.end and has_room else new


def _end(text: str, start: int, new: int, ends: list[int], sizes: ChunkSizes) -> int:
    last = reach(text, start, sizes.chunk_size)
    if last >= len(text):
        return len(text)
    if not sizes.at_sentences:
        return cut_anywhere(text, start, new, sizes.chunk_size, sizes.chunk_size)
    found = bisect_right(ends, last) - 1
    if found >= 0 and ends[found] > max(new, reach(text, start, sizes.chunk_size // 2)):
        return ends[found]
    return cut_at_word(text, start, new, sizes.chunk_size, sizes.chunk_size)

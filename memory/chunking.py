"""Cuts long text into spans of it that can be embedded whole and shown in place."""

from __future__ import annotations

import re
from typing import NamedTuple

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n")
_SPACE = re.compile(r"\s+")


class Span(NamedTuple):
    """The piece `text[start:end]`, in characters."""

    start: int
    end: int


def split(text: str, *, chunk_size: int) -> list[Span]:
    """Spans of at most `chunk_size` characters that together cover every non-space character, in order.

    Borders fall between paragraphs where they can, else between sentences, else between words, else anywhere.
    """
    return [trimmed for span in _fill(text, Span(0, len(text)), chunk_size) if (trimmed := _trim(text, span))]


def _fill(text: str, whole: Span, size: int, level: int = 0) -> list[Span]:
    """Pieces of `whole` at this level's borders, packed up to `size`; what is too long goes one level down."""
    if whole.end - whole.start <= size:
        return [whole]
    levels = (_PARAGRAPH, _SENTENCE, _SPACE)
    if level == len(levels):
        return [Span(i, min(i + size, whole.end)) for i in range(whole.start, whole.end, size)]
    borders = [m.end() for m in levels[level].finditer(text, whole.start, whole.end)]
    spans: list[Span] = []
    start = whole.start
    for end in [*borders, whole.end]:
        if spans and end - spans[-1].start <= size and spans[-1].end == start:
            spans[-1] = Span(spans[-1].start, end)
        elif end > start:
            spans.append(Span(start, end))
        start = end
    return [piece for span in spans for piece in _fill(text, span, size, level + 1)]


def _trim(text: str, span: Span) -> Span | None:
    piece = text[span.start : span.end]
    bare = piece.strip()
    if not bare:
        return None
    start = span.start + piece.index(bare)
    return Span(start, start + len(bare))

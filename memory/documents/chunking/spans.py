"""Spans of text, the sizes they must keep, and their ends without white space."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memory.documents.chunking.graphemes import is_border

_NONBLANK = re.compile(r"\S")


class Span(NamedTuple):
    """The text `text[start:end]`, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The sizes passed to `split`."""

    chunk_size: int
    overlap: int
    longest: int
    at_sentences: bool


def next_nonblank(text: str, at: int, end: int) -> int:
    """Return the start of the first grapheme cluster in `text[at:end]` that is not white space, or `end`."""
    found = _NONBLANK.search(text, at, end)
    if found is None:
        return end
    start = found.start()
    # A combining accent may follow a space, which then is part of the visible character.
    return start if start == at or is_border(text, start, at) else start - 1


def without_trailing_blank(text: str, start: int, end: int) -> int:
    """Return the end of `text[start:end]` without trailing white space."""
    return start + len(text[start:end].rstrip())


def join_neighbours(spans: Iterable[Span], fits: Callable[[int, int], bool]) -> Iterator[Span]:
    """Yield the spans, those that follow each other as one while `fits` is true of its start and end."""
    joined: Span | None = None
    for span in spans:
        if joined and fits(joined.start, span.end):
            joined = Span(joined.start, span.end)
            continue
        if joined:
            yield joined
        joined = span
    if joined:
        yield joined

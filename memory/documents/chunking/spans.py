"""A span of text, the sizes it keeps to, and its ends without white space."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from memory.documents.chunking.graphemes import is_border

_NONBLANK = re.compile(r"\S")


class Span(NamedTuple):
    """The piece `text[start:end]`, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """What `split` was asked for, in characters."""

    chunk_size: int
    overlap: int
    longest: int
    at_sentences: bool


def next_nonblank(text: str, at: int, end: int) -> int:
    """Where the first grapheme cluster with a character that is not white space begins in `text[at:end]`; else `end`."""
    found = _NONBLANK.search(text, at, end)
    if found is None:
        return end
    start = found.start()
    # An accent may stand on a space: then the space is part of what is seen.
    return start if start == at or is_border(text, start, at) else start - 1


def without_trailing_blank(text: str, start: int, end: int) -> int:
    """The end of `text[start:end]` without white space after it."""
    return start + len(text[start:end].rstrip())

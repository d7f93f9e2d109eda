"""Rows of cells as lines that repeat the name of each value's column: "Item: Paper; Price: 4"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from memory.documents.extraction.builder import collapse_whitespace

_NUMBER = re.compile(r"[-+]?[^\w\s]?\s?\d[\d.,' ]*\s?[%€$£]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAX_NAME_LENGTH = 80


def label_rows(rows: Iterable[tuple[int, Sequence[str]]], *, header: bool | None = None) -> Iterator[tuple[int, str]]:
    """Yield each row that is not blank as its number and a line of text.

    `header` is True if the first row contains column names. None guesses: the first row with several cells does if they
    differ, are short, and none is a number or date (years may be names). Rows above it are unchanged. The header is not
    repeated, unless nothing follows it.
    """
    names: list[str] = []
    undecided, only_names = header is not False, 0
    for number, row in rows:
        cells = [collapse_whitespace(cell) for cell in row]
        filled = [cell for cell in cells if cell]
        if not filled:
            continue
        if undecided and (header or len(filled) > 1):
            undecided = False
            if header or _are_names(filled):
                names, only_names = cells, number
                continue
        only_names = 0
        yield number, line_of(cells, names)
    if only_names:
        yield only_names, line_of(names, [])


def line_of(cells: Sequence[str], names: Sequence[str]) -> str:
    """Return one row as a line; a value without a column name is not labelled."""
    padded = [*names, *[""] * (len(cells) - len(names))]
    pairs = zip(padded, cells, strict=False)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def _are_names(cells: Sequence[str]) -> bool:
    return len(set(cells)) == len(cells) and all(
        len(cell) <= _MAX_NAME_LENGTH and (_YEAR.fullmatch(cell) or not _NUMBER.fullmatch(cell)) for cell in cells
    )

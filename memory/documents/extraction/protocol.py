"""The result of extraction as JSON lines from the child process, which are validated.

A string is the next text, a list a batch of markers. Objects hold the rest: {"kind"} as soon as it is known, {"hidden",
"start"} for hidden text, {"title", "pages"} at the end, or {"cannot", "facts"} with the error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_args

from memory.documents.extraction.result import ExtractedText, ExtractionLimits, Hidden, Marker, MarkKind
from memory.errors import ExtractionError, Fact, gettext_noop

# Exit status for running out of memory; other exceptions have 1.
OUT_OF_MEMORY = 77
_AS_LIST = attrgetter(*(field.name for field in fields(Marker)))
_PIECE = 65_536
_BATCH = 1000
_MAX_LINE_LENGTH = 2_000_000
_NONSENSE = gettext_noop("This file is damaged: its contents make no sense.")


def encode_result(reading: ExtractedText) -> Iterator[bytes]:
    """Yield the lines of a result."""
    for start in range(0, len(reading.text), _PIECE):
        yield encode_line(reading.text[start : start + _PIECE])
    for start in range(0, len(reading.marks), _BATCH):
        yield encode_line([_AS_LIST(mark) for mark in reading.marks[start : start + _BATCH]])
    for hidden in reading.hidden:
        yield encode_line({"hidden": hidden.text, "start": hidden.start})
    yield encode_line({"title": reading.title, "pages": reading.pages})


def encode_line(value: Any) -> bytes:
    """Return one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class ResultParser:
    """Assembles a result from bytes of the child process, which read an untrusted file."""

    def __init__(self, limits: ExtractionLimits) -> None:
        self.kind = ""
        self._longest = limits.max_characters
        self._rest = b""
        self._texts: list[str] = []
        self._length = 0
        self._marks: list[Marker] = []
        self._title: str | None = None
        self._pages = 0
        self._hidden: list[Hidden] = []
        self._hidden_length = 0

    def take(self, data: bytes) -> None:
        """Parse the next bytes. Raises ExtractionError with the reported error, and for invalid data."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE_LENGTH:
            raise ExtractionError(_NONSENSE)
        for line in lines:
            try:
                self._add(json.loads(line))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise ExtractionError(_NONSENSE) from error

    def reading(self) -> ExtractedText | None:
        """Return the result, or None while it is incomplete."""
        if self._title is None:
            return None
        text, marks, hidden = "".join(self._texts), tuple(self._marks), tuple(self._hidden)
        return ExtractedText(text, marks, self.kind, self._title, hidden, self._pages)

    def _add(self, value: Any) -> None:
        if isinstance(value, str):
            self._texts.append(value)
            self._length += len(value)
        elif isinstance(value, list):
            self._marks += [self._mark(*values) for values in value]
        elif "cannot" in value:
            raise ExtractionError(
                str(value["cannot"]), **{str(name): _fact(fact) for name, fact in value["facts"].items()}
            )
        elif "hidden" in value:
            self._hidden.append(Hidden(int(value["start"]), str(value["hidden"])))
            self._hidden_length += len(self._hidden[-1].text)
        elif "kind" in value:
            self.kind = str(value["kind"])
        else:
            self._title, self._pages = str(value["title"]), int(value["pages"])
        if self._pages < 0 or max(self._length, len(self._marks), self._hidden_length, self._pages) > self._longest:
            raise ValueError("the result exceeds the limit")

    def _mark(self, start: int, kind: MarkKind, label: str, level: int, within: str) -> Marker:
        latest = self._marks[-1].start if self._marks else 0
        if kind not in get_args(MarkKind) or not latest <= start <= self._length or not isinstance(level, int):
            raise ValueError("invalid marker")
        # Interned, because a hundred thousand rows are in the same sheet.
        return Marker(start, kind, label, level, sys.intern(within))


def _fact(value: Any) -> Fact:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value if isinstance(value, int) else str(value)

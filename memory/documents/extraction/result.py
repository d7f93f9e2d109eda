"""What reading a file gives: its text, and marks that say where in the file a piece of it stands."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory.errors import CatoError, format_message, gettext_noop

MarkKind = Literal["page", "slide", "sheet", "row", "heading", "chapter"]
BETWEEN = " › "
# Of these a span may cover several, and is told from the first to the last.
_COUNTED = {
    "page": (gettext_noop("page %(first)s"), gettext_noop("pages %(first)s–%(last)s")),
    "slide": (gettext_noop("slide %(first)s"), gettext_noop("slides %(first)s–%(last)s")),
    "row": (gettext_noop("row %(first)s"), gettext_noop("rows %(first)s–%(last)s")),
}
_SHEET = gettext_noop("sheet %(name)s")


class ExtractionCancelledError(CatoError):
    """Reading was given up because the caller asked for it."""


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """What one file may cost; beyond any of these it cannot be read.

    The defaults leave room for a book of some thousand pages on a machine with 2 GB of memory.
    """

    memory_mb: int = 768
    processor_seconds: int = 30
    wall_seconds: float = 60
    max_characters: int = 20_000_000
    max_pages: int = 5000


@dataclass(frozen=True, slots=True)
class Marker:
    """From offset `start` of the text on, one is here in the file.

    `label` is the number of a page, slide or row, the name of a sheet, the words of a heading or chapter. `within` is
    what it belongs to: the sheet of a row, the headings above a heading. `level` is that of a heading, from 1.
    """

    start: int
    kind: MarkKind
    label: str
    level: int = 0
    within: str = ""


@dataclass(frozen=True, slots=True)
class Hidden:
    """Text of the file that its readers do not see. It is no part of the text; it would stand at the offset `start`."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a file, its marks by their `start`, its kind (see `kinds.FORMATS`), and its title or "".

    `hidden` is what was left out of the text because nobody who opens the file sees it, up to a bounded length.
    """

    text: str
    marks: tuple[Marker, ...]
    kind: str
    title: str
    hidden: tuple[Hidden, ...] = ()


def location_label(marks: Sequence[Marker], start: int, end: int, *, translate: Callable[[str], str] = str) -> str:
    """Where `text[start:end]` stands, for a person: "pages 12–13", "sheet Costs, row 14", "Installation › Docker".

    It is the place of the span's first character; where no mark comes before that, of the first mark in the span. ""
    where there is none.
    """
    at = bisect_right(marks, start, key=_start) - 1
    if at < 0:
        if not marks or marks[0].start >= end:
            return ""
        at = bisect_right(marks, marks[0].start, key=_start) - 1
    mark = marks[at]
    if mark.kind in _COUNTED:
        last = marks[max(at, bisect_left(marks, end, key=_start) - 1)]
        one, several = _COUNTED[mark.kind]
        goes_on = last.kind == mark.kind and last.within == mark.within and last.label != mark.label
        words = format_message(translate(several if goes_on else one), {"first": mark.label, "last": last.label})
        return f"{format_message(translate(_SHEET), {'name': mark.within})}, {words}" if mark.within else words
    if mark.kind == "sheet":
        return format_message(translate(_SHEET), {"name": mark.label})
    return mark.within + BETWEEN + mark.label if mark.within else mark.label


def _start(mark: Marker) -> int:
    return mark.start

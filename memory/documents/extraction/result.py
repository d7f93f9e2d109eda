"""The result of extraction: the text, and markers for locations in the file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory.errors import CatoError, format_message, gettext_noop

MarkKind = Literal["page", "slide", "sheet", "row", "heading", "chapter"]
BETWEEN = " › "
# A span may cover several of these; its label names the first and the last.
_COUNTED = {
    "page": (gettext_noop("page %(first)s"), gettext_noop("pages %(first)s–%(last)s")),
    "slide": (gettext_noop("slide %(first)s"), gettext_noop("slides %(first)s–%(last)s")),
    "row": (gettext_noop("row %(first)s"), gettext_noop("rows %(first)s–%(last)s")),
}
_SHEET = gettext_noop("sheet %(name)s")


class ExtractionCancelledError(CatoError):
    """The caller cancelled the extraction."""


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of one extraction; a file beyond any of them is refused.

    The defaults suffice for a book of some thousand pages on a machine with 2 GB of memory.
    """

    memory_mb: int = 768
    processor_seconds: int = 30
    wall_seconds: float = 60
    max_characters: int = 20_000_000
    max_pages: int = 5000


@dataclass(frozen=True, slots=True)
class Marker:
    """The location in the file from offset `start` of the text.

    `label` is the number of a page, slide or row, the name of a sheet, or the text of a heading or chapter. `within`
    is the sheet of a row, or the headings above a heading. `level` is that of a heading, from 1.
    """

    start: int
    kind: MarkKind
    label: str
    level: int = 0
    within: str = ""


@dataclass(frozen=True, slots=True)
class Hidden:
    """Text that readers of the file do not see. It is not part of the text; `start` is where it would be."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a file, its markers ordered by `start`, its kind (see `formats.FORMATS`), and its title or "".

    `hidden` is the text that readers of the file do not see, up to a bounded length. `pages` is the number of its pages
    or slides, also of those without text; 0: its format has none.
    """

    text: str
    marks: tuple[Marker, ...]
    kind: str
    title: str
    hidden: tuple[Hidden, ...] = ()
    pages: int = 0


def location_label(marks: Sequence[Marker], start: int, end: int, *, translate: Callable[[str], str] = str) -> str:
    """Return the location of `text[start:end]` for people, such as "pages 12–13" or "Installation › Docker".

    It is the location of the first character or, if no marker precedes it, of the first marker in the span; "" if there
    is none.
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

"""Build the extracted text: extractors add blocks and markers, and offsets and the length limit are tracked."""

from __future__ import annotations

import re

from memory.documents.extraction.result import BETWEEN, ExtractedText, Hidden, Marker, MarkKind
from memory.errors import ExtractionError, gettext_noop
from memory.text import clean_text

# Form feed, vertical tab, NEL and the two separators of Unicode end a line; other control characters are removed.
_LINE_ENDS = re.compile(r"[\f\v\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")
_MAX_LABEL_LENGTH = 120
# Limits the memory for markers, a hundred bytes each.
_MAX_MARKS = 500_000
# Characters of hidden text that are stored per file, for the document's page.
_MAX_HIDDEN = 20_000
_MAX_HIDDEN_PASSAGES = 200


def normalise_text(text: str) -> str:
    r"""Return `text` with `\n` as its only line end, without control characters except tabs and byte order marks."""
    # Fast path: of hundreds of thousands of rows, hardly any needs changes.
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", clean_text(text)))


def collapse_whitespace(text: str) -> str:
    """Return `text` with each run of white space replaced by one space, and none at its ends."""
    return " ".join(text.split())


class TextBuilder:
    """The text and markers of one file. A marker refers to the text that is added next.

    Every method that adds text raises ExtractionError if the text becomes longer than `max_characters` characters.
    """

    def __init__(self, max_characters: int) -> None:
        self.title = ""
        self._pages = 0
        self._max_characters = max_characters
        self._parts: list[str] = []
        self._length = 0
        self._marks: list[Marker] = []
        self._pending: list[tuple[MarkKind, str, int, str]] = []
        self._path: list[tuple[int, str]] = []
        self.hidden: list[Hidden] = []
        self._hidden_room = _MAX_HIDDEN

    @property
    def blank(self) -> bool:
        """Return True if there is no text yet."""
        return not self._parts

    def block(self, text: str, *, gap: str = "\n\n") -> None:
        """Add a paragraph after `gap`, unless it is blank."""
        text = normalise_text(text).strip("\n").rstrip()
        if text:
            if self._parts:
                self._append(gap)
            self._place_marks()
            self._append(text)

    def conceal(self, text: str) -> None:
        """Store text that a reader of the file does not see, with its offset, up to a limit."""
        text = normalise_text(text).strip()[: self._hidden_room]
        if not text:
            return
        self._hidden_room -= len(text)
        if self.hidden and self.hidden[-1].start == self._length:
            text = f"{self.hidden.pop().text}\n{text}"
        if len(self.hidden) < _MAX_HIDDEN_PASSAGES:
            self.hidden.append(Hidden(self._length, text))

    def line(self, text: str) -> None:
        """Add a line directly below the previous text."""
        self.block(text, gap="\n")

    def verbatim(self, text: str) -> None:
        """Add `text`, which is normalised, unchanged."""
        if text:
            self._place_marks()
            self._append(text)

    def mark(self, kind: MarkKind, label: str, *, level: int = 0, within: str = "") -> None:
        """Mark the location of the next text. A page, slide or row without text gets no marker, but pages are counted."""
        self._pages += kind in ("page", "slide")
        if kind != "heading":
            self._pending = [pending for pending in self._pending if pending[0] != kind]
        self._pending.append((kind, _short(label), level, within))

    def heading(self, level: int, words: str) -> None:
        """Mark a heading, below those with a smaller level; its words are the next text."""
        label = _short(words)
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        # A chapter often begins with its own name.
        if label and not (self._path and self._path[-1][1] == label):
            self.mark("heading", label, level=level, within=BETWEEN.join(above for _, above in self._path))
            self._path.append((level, label))

    def chapter(self, name: str) -> None:
        """Mark a chapter, which ends all previous headings."""
        self._path = [(0, _short(name))]
        self.mark("chapter", name)

    def finish(self, kind: str) -> ExtractedText:
        """Return the extracted text. Raises ExtractionError if there is none."""
        text = "".join(self._parts)
        if not text.strip() and self.hidden:
            raise ExtractionError(
                gettext_noop("All text of this file is invisible to its readers, so none of it is kept.")
            )
        if not text.strip():
            raise ExtractionError(gettext_noop("There is no text in this file."))
        title = _short(normalise_text(self.title))
        return ExtractedText(text, tuple(self._marks), kind, title, tuple(self.hidden), self._pages)

    def _append(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._max_characters:
            sentence = gettext_noop("This file has more than %(most)s characters of text. Upload it in parts.")
            raise ExtractionError(sentence, most=self._max_characters)
        self._parts.append(text)

    def _place_marks(self) -> None:
        self._marks += [Marker(self._length, *pending) for pending in self._pending]
        self._pending.clear()
        if len(self._marks) > _MAX_MARKS:
            sentence = gettext_noop("This file has more than %(most)s rows or headings. Upload it in parts.")
            raise ExtractionError(sentence, most=_MAX_MARKS)


def _short(label: str) -> str:
    label = collapse_whitespace(normalise_text(label))
    return label if len(label) <= _MAX_LABEL_LENGTH else label[: _MAX_LABEL_LENGTH - 1].rstrip() + "…"

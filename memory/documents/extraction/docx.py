"""Extract Word documents (DOCX): paragraphs, headings by style, lists, tables by row, and footnotes at the end."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.labelled_rows import label_rows
from memory.documents.extraction.result import ExtractionLimits
from memory.documents.extraction.xml_stream import XmlHandler
from memory.documents.extraction.zip_package import document_title, main_part, open_archive, parse_part, relationships

_HEADING_NAME = re.compile(r"heading ([1-9])", re.IGNORECASE)
# Duplicates for older programs, the source of moved text, and pronunciation guides.
_DROPPED = frozenset({"Fallback", "moveFrom", "rt"})
_OFF = frozenset({"0", "false", "off"})
_IN_RUN = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Roles that a style may give its paragraphs, besides the level of a heading.
_TITLE, _LIST = -1, -2


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the present text of the document, without deleted and hidden text."""
    with open_archive(file) as package:
        builder.title = document_title(package)
        part = main_part(package)
        related = {relation.kind: relation.part for relation in relationships(package, part).values()}
        body = _Body(builder, _styles_of(package, related.get("styles", "")))
        parse_part(package, part, body)
        if body.notes:
            parse_part(package, related.get("footnotes", "footnotes"), _Footnotes(builder, body.notes))


def _styles_of(package: zipfile.ZipFile, part: str) -> dict[str, int]:
    """Return the role of each style by its id: the level of a heading, a title, a list item, or 0."""
    styles = _Styles()
    if part in package.NameToInfo:
        parse_part(package, part, styles)
    return {style: styles.role_of(style) for style in styles.names}


class _Styles(XmlHandler):
    """Handle style definitions: names, base styles, and outline levels."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._based_on: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._style = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._style = attributes.get("styleId", "")
        elif name == "name":
            self.names[self._style] = value
        elif name == "basedOn":
            self._based_on[self._style] = value
        elif name == "outlineLvl" and value.isdecimal():
            self._levels[self._style] = int(value) + 1

    def role_of(self, style: str) -> int:
        """Return a level from 1, `_TITLE`, `_LIST` or 0, of the style or the nearest base style with a role."""
        seen: set[str] = set()
        while style in self.names and style not in seen:
            seen.add(style)
            name = self.names[style].lower()
            if heading := _HEADING_NAME.fullmatch(name):
                return int(heading[1])
            if 1 <= self._levels.get(style, 0) <= 9:
                return self._levels[style]
            if name == "title":
                return _TITLE
            if name.startswith("list "):
                return _LIST
            style = self._based_on.get(style, "")
        return 0


@dataclass
class _Paragraph:
    words: list[str] = field(default_factory=list)
    role: int = 0


class _Body(XmlHandler):
    """Handle paragraphs and tables. Both can be nested (text boxes, cells), so they are kept on stacks."""

    def __init__(self, builder: TextBuilder, styles: dict[str, int]) -> None:
        # Numbers of footnotes by id, in order of reference.
        self.notes: dict[str, int] = {}
        self._builder = builder
        self._styles = styles
        self._dropped = 0
        self._paragraphs: list[_Paragraph] = []
        self._hidden_runs: list[bool] = []
        self._in_text = False
        self._tables: list[list[list[str]]] = []
        self._after_item = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._dropped or name in _DROPPED:
            self._dropped += 1
        elif name == "p":
            self._paragraphs.append(_Paragraph())
        elif name == "tbl":
            self._tables.append([])
        elif name == "tr" and self._tables:
            self._tables[-1].append([])
        elif name == "tc" and self._tables and self._tables[-1]:
            self._tables[-1][-1].append("")
        elif name == "r":
            self._hidden_runs.append(False)
        elif self._hidden_runs:
            self._start_in_run(name, attributes)
        elif self._paragraphs:
            self._start_in_paragraph(name, attributes)

    def end(self, name: str) -> None:
        self._in_text = False
        if self._dropped:
            self._dropped -= 1
        elif name == "p":
            self._end_paragraph(self._paragraphs.pop())
        elif name == "tbl":
            self._end_table(self._tables.pop())
        elif name == "r":
            self._hidden_runs.pop()

    def text(self, text: str) -> None:
        if self._in_text and self._paragraphs:
            self._paragraphs[-1].words.append(text)

    def _start_in_run(self, name: str, attributes: dict[str, str]) -> None:
        if name == "vanish":
            self._hidden_runs[-1] = attributes.get("val", "") not in _OFF
        elif self._hidden_runs[-1] or not self._paragraphs:
            return
        elif name == "t":
            self._in_text = True
        elif name == "footnoteReference":
            number = self.notes.setdefault(attributes.get("id", ""), len(self.notes) + 1)
            self._paragraphs[-1].words.append(f"[{number}]")
        elif name in _IN_RUN:
            self._paragraphs[-1].words.append(_IN_RUN[name])

    def _start_in_paragraph(self, name: str, attributes: dict[str, str]) -> None:
        paragraph, value = self._paragraphs[-1], attributes.get("val", "")
        if name == "pStyle":
            paragraph.role = self._styles.get(value, 0)
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:
            paragraph.role = int(value) + 1
        elif name == "numId" and value != "0" and not paragraph.role:
            paragraph.role = _LIST

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.words).strip()
        if self._tables and self._tables[-1] and self._tables[-1][-1]:
            self._tables[-1][-1][-1] += " " + text
            return
        if paragraph.role > 0:
            text = collapse_whitespace(text)
            self._builder.heading(paragraph.role, text)
        elif paragraph.role == _TITLE:
            self._builder.title = self._builder.title or text
        is_item = paragraph.role == _LIST and bool(text)
        self._builder.block("- " + text if is_item else text, gap="\n" if is_item and self._after_item else "\n\n")
        self._after_item = is_item or (self._after_item and not text)

    def _end_table(self, rows: list[list[str]]) -> None:
        lines = [line for _, line in label_rows(enumerate(rows, 1))]
        if self._tables and self._tables[-1] and self._tables[-1][-1]:
            self._tables[-1][-1][-1] += " " + " / ".join(lines)
        else:
            self._builder.block("\n".join(lines))


class _Footnotes(_Body):
    """Handle the footnotes that the body refers to, each a paragraph that begins with its number."""

    def __init__(self, builder: TextBuilder, numbers: dict[str, int]) -> None:
        super().__init__(builder, {})
        self._numbers = numbers
        self._number = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "footnote":
            self._number = self._numbers.get(attributes.get("id", ""), 0)
        super().start(name, attributes)
        if name == "p" and self._number and self._paragraphs:
            self._paragraphs[-1].words.append(f"[{self._number}] ")

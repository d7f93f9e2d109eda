"""Extract PowerPoint slides (PPTX): title, text, tables by row, and speaker's notes of each slide."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder
from memory.documents.extraction.labelled_rows import label_rows
from memory.documents.extraction.result import ExtractionLimits
from memory.documents.extraction.xml_stream import XmlHandler
from memory.documents.extraction.zip_package import (
    Relationship,
    document_title,
    main_part,
    open_archive,
    parse_part,
    relationships,
)

_TITLES = frozenset({"title", "ctrTitle"})
# Placeholders repeated on every slide.
_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
_NO = frozenset({"0", "false"})


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add each slide, marked with its number from 1; hidden slides count but are not read."""
    with open_archive(file) as package:
        builder.title = document_title(package)
        part = main_part(package)
        order = _Order()
        parse_part(package, part, order)
        related = relationships(package, part)
        for number, slide_id in enumerate(order.ids, start=1):
            builder.mark("slide", str(number))
            if slide_id in related:
                _add_slide(package, related[slide_id], builder)


def _add_slide(package: zipfile.ZipFile, slide: Relationship, builder: TextBuilder) -> None:
    shapes = _Shapes()
    parse_part(package, slide.part, shapes)
    if shapes.hidden:
        return
    builder.title = builder.title or (shapes.titles[0] if shapes.titles else "")
    for text in shapes.titles + shapes.texts:
        builder.block(text)
    for relation in relationships(package, slide.part).values():
        if relation.kind == "notesSlide":
            notes = _Shapes()
            parse_part(package, relation.part, notes)
            builder.block("Notes: " + "\n".join(notes.texts) if notes.texts else "")


class _Order(XmlHandler):
    """Handle the list of slides: their relation ids, in order."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            self.ids.append(attributes.get("r:id", ""))


class _Shapes(XmlHandler):
    """Handle the shapes of a slide: the text of its title, and of the others in order."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.texts: list[str] = []
        self.hidden = False
        self._dropped = 0
        self._shape_hidden = False
        self._placeholder = ""
        self._paragraphs: list[str] = []
        self._words: list[str] = []
        self._in_text = False
        self._rows: list[list[str]] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._dropped or name == "Fallback":
            self._dropped += 1
        elif name == "sld":
            self.hidden = attributes.get("show", "1") in _NO
        elif name in ("sp", "graphicFrame"):
            self._placeholder, self._shape_hidden = "", False
            self._paragraphs = []
        elif name == "cNvPr":
            self._shape_hidden = attributes.get("hidden", "0") not in _NO
        elif name == "ph":
            self._placeholder = attributes.get("type", "")
        elif name == "tbl":
            self._rows = []
        elif name == "tr" and self._rows is not None:
            self._rows.append([])
        elif name == "p":
            self._words = []
        elif name == "t":
            self._in_text = True
        elif name == "br":
            self._words.append("\n")

    def end(self, name: str) -> None:
        self._in_text = False
        if self._dropped:
            self._dropped -= 1
        elif name == "p":
            self._paragraphs.append("".join(self._words).strip())
        elif name == "tc" and self._rows:
            self._rows[-1].append(" ".join(self._paragraphs))
            self._paragraphs = []
        elif name == "tbl" and self._rows is not None:
            self._paragraphs = [line for _, line in label_rows(enumerate(self._rows, 1))]
            self._rows = None
        elif name in ("sp", "graphicFrame"):
            self._end_shape()

    def text(self, text: str) -> None:
        if self._in_text:
            self._words.append(text)

    def _end_shape(self) -> None:
        text = "\n".join(paragraph for paragraph in self._paragraphs if paragraph)
        if text and not self._shape_hidden and self._placeholder not in _FURNITURE:
            (self.titles if self._placeholder in _TITLES else self.texts).append(text)
        self._paragraphs = []

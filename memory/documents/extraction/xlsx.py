"""Extract Excel workbooks (XLSX): the values of each sheet by row, with column names.

The XML is streamed: libraries expand a sheet to a full grid, which takes gigabytes for two cells in opposite corners.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder
from memory.documents.extraction.labelled_rows import label_rows
from memory.documents.extraction.result import ExtractionLimits
from memory.documents.extraction.xlsx_numbers import XlsxNumberFormats, format_number
from memory.documents.extraction.xml_stream import XmlHandler
from memory.documents.extraction.zip_package import (
    document_title,
    iterparse_part,
    main_part,
    open_archive,
    parse_part,
    relationships,
)

_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
# The limits of Excel.
_COLUMNS = 16_384


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add each visible sheet, with its name above its rows; sheets and rows are marked."""
    with open_archive(file) as package:
        builder.title = document_title(package)
        part = main_part(package)
        related = relationships(package, part)
        by_kind = {relation.kind: relation.part for relation in related.values()}
        workbook, strings, formats = _Workbook(), _Strings(), XlsxNumberFormats()
        parse_part(package, part, workbook)
        for kind, handler in (("sharedStrings", strings), ("styles", formats)):
            if by_kind.get(kind, "") in package.NameToInfo:
                parse_part(package, by_kind[kind], handler)
        formats.from_1904 = workbook.from_1904
        for name, sheet_id in workbook.sheets:
            if sheet_id not in related or related[sheet_id].kind != "worksheet":
                continue
            builder.mark("sheet", name)
            builder.block(name)
            for number, line in label_rows(_rows(package, related[sheet_id].part, strings.all, formats)):
                builder.mark("row", str(number), within=name)
                builder.line(line)


def _rows(
    package: zipfile.ZipFile, part: str, strings: list[str], formats: XlsxNumberFormats
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and cells of each row of a sheet."""
    cells = _Cells(strings, formats)
    for _ in iterparse_part(package, part, cells):
        yield from cells.rows
        cells.rows.clear()


class _Workbook(XmlHandler):
    """Handle the workbook: visible sheets by name and relation id, and the date system."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet" and attributes.get("state", "visible") == "visible":
            self.sheets.append((attributes.get("name", ""), attributes.get("r:id", "")))
        elif name == "workbookPr":
            self.from_1904 = attributes.get("date1904", "0") in ("1", "true")


class _Strings(XmlHandler):
    """Handle the shared strings; parts of one string differ in format only."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._words: list[str] = []
        self._in_text = False
        self._pronounced = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self._words = []
        elif name == "rPh":
            self._pronounced = True
        self._in_text = name == "t" and not self._pronounced

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "rPh":
            self._pronounced = False
        elif name == "si":
            self.all.append("".join(self._words))

    def text(self, text: str) -> None:
        if self._in_text:
            self._words.append(text)


class _Cells(XmlHandler):
    """Handle the cells of a sheet and collect them in `rows`, each a number and texts from column A."""

    def __init__(self, strings: list[str], formats: XlsxNumberFormats) -> None:
        self.rows: list[tuple[int, list[str]]] = []
        self._strings = strings
        self._formats = formats
        self._number = 0
        self._row: list[str] = []
        self._column = 0
        self._type = ""
        self._style = 0
        self._words: list[str] = []
        self._in_value = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._in_value = name in ("v", "t")
        if name == "row":
            # Rows and cells without a reference follow the previous one.
            said_number = attributes.get("r", "")
            self._number = int(said_number) if said_number.isdecimal() else self._number + 1
            self._row, self._column = [], 0
        elif name == "c":
            if place := _CELL.fullmatch(attributes.get("r", "")):
                self._column = min(_column_number(place[1]), _COLUMNS)
            else:
                self._column = min(self._column + 1, _COLUMNS)
            self._type, style = attributes.get("t", "n"), attributes.get("s", "0")
            self._style = int(style) if style.isdecimal() else 0
            self._words = []

    def end(self, name: str) -> None:
        self._in_value = False
        if name == "c" and self._words:
            self._row += [""] * (self._column - len(self._row))
            self._row[self._column - 1] = self._value("".join(self._words))
        elif name == "row" and self._row:
            self.rows.append((self._number, self._row))

    def text(self, text: str) -> None:
        if self._in_value:
            self._words.append(text)

    def _value(self, raw: str) -> str:
        if self._type == "s":
            number = int(raw) if raw.strip().isdecimal() else len(self._strings)
            return self._strings[number] if number < len(self._strings) else ""
        if self._type == "b":
            return "TRUE" if raw.strip() == "1" else "FALSE"
        return format_number(raw, self._formats.of(self._style), self._formats.from_1904) if self._type == "n" else raw


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number

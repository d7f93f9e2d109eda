"""Extract delimited tables, with fields separated by comma, semicolon, tab or bar."""

from __future__ import annotations

import csv
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, normalise_text
from memory.documents.extraction.encoding import decode
from memory.documents.extraction.labelled_rows import label_rows
from memory.documents.extraction.result import ExtractionLimits

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add each row of the table as a line, marked with its number."""
    lines = normalise_text(decode(file.read())).split("\n")
    # Excel writes the delimiter in a separate first line.
    has_separator_line = lines[0].lower().startswith("sep=") and len(lines[0]) == 5
    delimiter = lines[0][4] if has_separator_line else _delimiter_of(lines[:_SAMPLE_LINES])
    # The whole text is limited, so the csv module's limit per field is not needed.
    csv.field_size_limit(limits.max_characters)
    rows = csv.reader((line + "\n" for line in lines[has_separator_line:]), delimiter=delimiter)
    for number, line in label_rows(enumerate(rows, 1 + has_separator_line)):
        builder.mark("row", str(number))
        builder.line(line)


def _delimiter_of(lines: list[str]) -> str:
    """Return the delimiter that splits most lines into the same number of fields (more than one), or a comma."""
    best = (0, 0, ",")
    for delimiter in _DELIMITERS:
        counts = [len(fields) for fields in csv.reader(lines, delimiter=delimiter) if fields]
        several = [count for count in counts if count > 1]
        usual = max(set(several), key=several.count, default=0)
        best = max(best, (several.count(usual), usual, delimiter), key=lambda found: found[:2])
    return best[2]

"""Compare Cato's readers of spreadsheets and JSON with libraries, as ratios in one run.

The libraries are not dependencies: install openpyxl, python-calamine and ijson in a folder, and run
`DJANGO_SETTINGS_MODULE=cato_web.settings PYTHONPATH=/that/folder python -m benchmarks.libraries`.
docs/decisions/0007-libraries-for-formats.md states the result.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable

import django
import ijson
import openpyxl
from python_calamine import CalamineWorkbook

from benchmarks.figures import table

ROWS, CONVERSATIONS = 40_000, 2_000


def workbook() -> bytes:
    """Return a sheet of six columns."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Stock")
    for number in range(ROWS):
        sheet.append([f"Item {number}", number * 1.5, "2026-01-17", "some words in a cell", number, number % 2 == 0])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def conversations() -> bytes:
    """Return an export of about 10 MB in the shape of ChatGPT's."""
    message = {"message": {"content": {"parts": ["some text " * 20]}}}
    conversation = {"title": "A title", "mapping": {str(number): message for number in range(20)}}
    return json.dumps([conversation] * CONVERSATIONS).encode()


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    django.setup()
    from chat.imports.formats.pieces import pieces
    from memory.documents.extraction import xlsx
    from memory.documents.extraction.builder import TextBuilder
    from memory.documents.extraction.result import ExtractionLimits

    book, export = workbook(), conversations()
    own_sheet = seconds(lambda: xlsx.read(io.BytesIO(book), TextBuilder(50_000_000), ExtractionLimits()))
    own_json = seconds(lambda: [json.loads(piece) for piece in pieces(io.BytesIO(export))])
    measured = {
        "openpyxl": own_sheet
        / seconds(lambda: list(openpyxl.load_workbook(io.BytesIO(book), read_only=True).active.iter_rows())),
        "python-calamine": own_sheet
        / seconds(lambda: CalamineWorkbook.from_filelike(io.BytesIO(book)).get_sheet_by_index(0).to_python()),
        "ijson": own_json / seconds(lambda: list(ijson.items(io.BytesIO(export), "item"))),
    }
    table(["library", "times as fast as Cato's reader"], [[name, f"{ratio:.1f}"] for name, ratio in measured.items()])


if __name__ == "__main__":
    main()

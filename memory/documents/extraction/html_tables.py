"""Tables of web pages: rows with column names, or single cells if the table is only used for layout."""

from __future__ import annotations

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.labelled_rows import label_rows, line_of


class Table:
    """Collects cells until the table turns out to be a layout; then text is added immediately."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._rows: list[list[tuple[str, bool]]] = []
        self._cell: list[str] | None = None
        self._names_a_column = False
        self._is_layout = False

    def become_layout(self) -> None:
        """Add the collected text to the result: the table contains headings or tables, so it has no rows of values."""
        self._is_layout = True
        for row in self._rows:
            for text, _ in row:
                self._builder.block(text)
        for text in self._cell or ():
            self._builder.block(text)
        self._rows.clear()
        self._cell = None

    def begin_row(self) -> None:
        """Begin a row."""
        self._rows.append([])

    def begin_cell(self, *, is_name: bool) -> None:
        """Begin a cell; `is_name` if it is a header of its column or row."""
        if not self._is_layout:
            self._cell, self._names_a_column = [], is_name

    def take(self, text: str) -> bool:
        """Return True if `text` was added to the open cell, False if there is none."""
        if self._cell is None:
            return False
        self._cell.append(text)
        return True

    def end_cell(self) -> None:
        """End the open cell."""
        if self._cell is not None:
            if not self._rows:
                self.begin_row()
            self._rows[-1].append((collapse_whitespace(" ".join(self._cell)), self._names_a_column))
            self._cell = None

    def finish(self) -> None:
        """Add the rows to the text."""
        self.end_cell()
        rows = [row for row in self._rows if any(text for text, _ in row)]
        # Header cells in the markup make guessing unnecessary.
        has_names = any(is_name for row in rows for _, is_name in row)
        header = bool(rows) and len(rows) > 1 and all(is_name or not text for text, is_name in rows[0])
        if has_names and not header:
            lines = [_named_by_first(row) for row in rows]
        else:
            texts = [[text for text, _ in row] for row in rows]
            lines = [line for _, line in label_rows(enumerate(texts, 1), header=True if header else None)]
        self._builder.block("\n".join(lines))


def _named_by_first(row: list[tuple[str, bool]]) -> str:
    """Return a row whose first cell may be the name of the others."""
    cells = [text for text, _ in row if text]
    if row[0][1] and row[0][0] and len(cells) > 1:
        return f"{cells[0]}: {line_of(cells[1:], [])}"
    return line_of(cells, [])

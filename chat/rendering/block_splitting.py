"""Splits an answer into blocks, line by line, so that a finished block never changes.

A block can be rendered separately: a paragraph, a code block, a part of a long list or table. The line that ends a block
determines its end without looking back, so that the cost is linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chat.rendering.math import CLOSERS

# A longer list or table is continued in another block, from its next item or row.
MAX_PART_CHARS = 4_000  # characters
_CELL_WEIGHT = 8  # the minimum weight of a cell, in characters
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)$")
_HEADING = re.compile(r"( {0,3})#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r"( {0,3})([-+*]|(\d{1,9})[.)])(?:([ \t]+)(?=\S)|[ \t]*$)")
_DELIMITERS = frozenset("|-: \t")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of Markdown. For a continued part, `head` is the table's header and `number` that of the first item."""

    text: str
    head: str = ""
    number: int | None = None
    is_continued: bool = False


@dataclass(slots=True)
class Splitter:
    """Splits whole lines into blocks; `head`, `number` and `is_continued` are those of the open block."""

    head: str = ""
    number: int | None = None
    is_continued: bool = False
    _kind: str = ""
    _fence: str = ""
    _formula: str = ""  # the delimiter that ends the open block formula
    _indent: int = 0  # of the text of a list item
    _is_after_blank: bool = False
    _first_number: int | None = None
    _items: int = 0
    _columns: int = 0
    _lines: list[str] = field(default_factory=list)
    _weight: int = 0

    @property
    def text(self) -> str:
        """The text of the open block."""
        return "".join(self._lines)

    @property
    def is_code(self) -> bool:
        """Return whether the open block is a fenced code block."""
        return self._kind == "fence"

    @property
    def is_table(self) -> bool:
        """Return whether the open block is a table."""
        return self._kind == "table"

    def feed(self, line: str) -> list[Block]:
        """Add a line with its line end; return the blocks that it ended, which can include the line."""
        bare = line.rstrip("\n")
        if not bare.strip():
            return self._feed_blank(line)
        ended = []
        if self._kind and self._begins_another(bare):
            ended.append(self._end())
        elif self._kind in ("list", "table") and self._is_full(bare):
            ended.append(self._end_part())
        if not self._kind:
            self._begin(bare)
        self._take(line, bare)
        if self._kind == "heading" or (self._kind == "fence" and self._fence == ""):
            ended.append(self._end())
        return ended

    def close(self) -> list[Block]:
        """Return the open block at the end of the text."""
        return [self._end()] if self._kind else []

    def _feed_blank(self, line: str) -> list[Block]:
        if not self._kind:
            return []
        self._lines.append(line)
        self._weight += len(line)
        self._is_after_blank = True
        return [self._end()] if self._kind in ("text", "table") else []

    def _begins_another(self, line: str) -> bool:
        """Return whether this line, which is not blank, starts a new block."""
        if self._kind == "fence" or self._formula:
            return False
        indent = len(line) - len(line.lstrip(" \t"))
        if self._kind == "code":
            return indent < 4 and not line.startswith("\t")
        if self._kind == "list":
            if indent == 0 and self._is_after_blank and not _ITEM.match(line):
                return True
            return indent < self._indent and bool(_FENCE.match(line) or _HEADING.match(line))
        if _FENCE.match(line) or _HEADING.match(line):
            return True
        # A list can interrupt a paragraph only if its first item is not empty and, if numbered, has the number 1.
        item = _ITEM.match(line)
        return item is not None and item[4] is not None and item[3] in (None, "1")

    def _is_full(self, line: str) -> bool:
        """Return whether the list or table has reached the maximum size, and this line starts an item or row."""
        if self._weight < MAX_PART_CHARS:
            return False
        if self._kind == "table":
            return True
        item = _ITEM.match(line)
        return item is not None and len(item[1]) < self._indent

    def _begin(self, line: str) -> None:
        item = _ITEM.match(line)
        if fence := _FENCE.match(line):
            self._kind, self._fence = "fence", fence[1] or fence[2]
        elif _HEADING.match(line):
            self._kind = "heading"
        elif item:
            self._kind, self._items = "list", 0
            self._first_number = int(item[3]) if item[3] else None
        else:
            self._kind = "code" if line.startswith(("    ", "\t")) else "text"

    def _take(self, line: str, bare: str) -> None:
        self._lines.append(line)
        self._weight += len(line) + _CELL_WEIGHT * self._columns
        if self._kind == "fence" and len(self._lines) > 1:
            closing = bare.strip()
            indent = len(bare) - len(bare.lstrip(" "))
            if indent < 4 and len(closing) >= len(self._fence) and not closing.strip(self._fence[0]):
                self._fence = ""
        elif self._kind == "list":
            item = _ITEM.match(bare)
            if item and (not self._items or len(item[1]) < self._indent):
                self._items += 1
                self._indent = len(item[0]) if item[4] and len(item[4]) <= 4 else len(item[1]) + len(item[2]) + 1
        elif self._formula:
            self._formula = "" if bare.rstrip().endswith(self._formula) else self._formula
        elif (closer := CLOSERS.get(bare.strip()[:2])) and closer not in bare.strip()[2:]:
            self._formula = closer
        elif self._kind == "text" and len(self._lines) == 2 and "|" in self._lines[0] and set(bare) <= _DELIMITERS:
            self._kind, self.head, self._columns = "table", self.text, self._lines[0].count("|")
        self._is_after_blank = False

    def _end(self) -> Block:
        block = Block(self.text, self.head if self.is_continued else "", self.number, self.is_continued)
        self.head = self._kind = self._fence = self._formula = ""
        self.number, self.is_continued, self._is_after_blank = None, False, False
        self._lines, self._weight, self._columns = [], 0, 0
        return block

    def _end_part(self) -> Block:
        """End a part of a list or table, which the next block continues."""
        kind, head, columns = self._kind, self.head, self._columns
        block = self._end()
        self.is_continued, self._kind, self.head, self._columns = True, kind, head, columns
        if kind == "list" and self._first_number is not None:
            self.number = self._first_number + self._items
        return block

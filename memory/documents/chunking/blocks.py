"""Find the blocks of Markdown: headings, fences, tables, list items and paragraphs.

It works line by line without nesting, which is enough to keep related lines together. Plain text is all paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from memory.documents.chunking.spans import Span, without_trailing_blank

_NONBLANK = re.compile(r"\S")
_HEADING = re.compile(r" {0,3}#{1,6}(?=\s|\Z)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|(\d{1,9})[.)])(?=[ \t]|$)", re.MULTILINE)
# The end of a line before one that is blank or may begin another block. A paragraph can have 100,000 lines.
_BEFORE_OTHER = re.compile(r"\n(?=[ \t]*+(?:[#`~|*+-]|\d{1,9}[.)]|\s|\Z)|[^\n|]*\|)")


class BlockKind(Enum):
    """The kind of a block."""

    HEADING = "heading"
    FENCE = "fence"
    TABLE = "table"
    ITEM = "item"
    PARAGRAPH = "paragraph"


class Block(NamedTuple):
    """One block without trailing white space. `whole`: the ends of the list and of the item that begin with it."""

    kind: BlockKind
    start: int
    end: int
    whole: tuple[int, ...]


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of `text` in order; together they contain everything that is not white space."""
    list_blocks: list[Block] = []
    for block in _flat_blocks(text):
        belongs = block.kind is BlockKind.ITEM or (
            bool(list_blocks) and block.kind is not BlockKind.HEADING and _is_indented(text, block.start)
        )
        if not belongs:
            yield from _close_list(list_blocks)
            list_blocks = []
            yield block
        else:
            list_blocks.append(block)
    yield from _close_list(list_blocks)


def lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the lines of `text[start:end]` that are not blank."""
    while (line := _next_line(text, start, end)) is not None:
        yield line
        start = line.end


def _close_list(list_blocks: list[Block]) -> Iterator[Block]:
    """Yield the blocks of a list, each item with its end, which is where the next item begins."""
    with_ends: list[Block] = []
    item_end = 0
    for block in reversed(list_blocks):
        item_end = item_end or block.end
        if block.kind is BlockKind.ITEM:
            block, item_end = block._replace(whole=(item_end,)), 0
        with_ends.append(block)
    if with_ends:
        with_ends[-1] = with_ends[-1]._replace(whole=(list_blocks[-1].end, *with_ends[-1].whole))
    return reversed(with_ends)


def _flat_blocks(text: str) -> Iterator[Block]:
    at = 0
    while (line := _next_line(text, at, len(text))) is not None:
        kind = _kind(text, line)
        if kind is BlockKind.PARAGRAPH and (underline := _underline(text, line)):
            kind, at = BlockKind.HEADING, underline.end
        else:
            at = _end(text, line, kind)
        yield Block(kind, line.start, without_trailing_blank(text, line.start, at), ())


def _kind(text: str, line: Span) -> BlockKind:
    """Return the kind of a block that begins with this line."""
    bare = text[line.start : line.end].strip()
    if bare[0] == "#" and _HEADING.match(text, line.start):
        return BlockKind.HEADING
    if bare[0] in "`~" and _fence_mark(bare):
        return BlockKind.FENCE
    if _ITEM.match(text, line.start):
        return BlockKind.ITEM
    if bare[0] == "|" or ("|" in bare and _is_ruled(text, line)):
        return BlockKind.TABLE
    return BlockKind.PARAGRAPH


def _end(text: str, line: Span, kind: BlockKind) -> int:
    """Return the end of the block that begins with `line`."""
    if kind is BlockKind.HEADING:
        return line.end
    if kind is BlockKind.FENCE:
        return _fence_end(text, line)
    while True:
        if kind is not BlockKind.TABLE:
            found = _BEFORE_OTHER.search(text, line.end)
            line = Span(line.start, found.start() if found else len(text))
        following = _line_below(text, line)
        if following is None or _interrupts(text, following, kind):
            return line.end
        line = following


def _fence_mark(bare: str) -> str:
    """Return the run of three or more characters that opens a fence, "" if there is none."""
    mark = bare[: len(bare) - len(bare.lstrip(bare[0]))]
    is_code_in_text = bare[0] == "`" and "`" in bare[len(mark) :]
    return "" if len(mark) < 3 or is_code_in_text else mark


def _fence_end(text: str, line: Span) -> int:
    """Return the end of a fence: a line with at least its mark, or the end of the text."""
    mark = _fence_mark(text[line.start : line.end].strip())
    at = line.end
    while (position := text.find(mark, at)) >= 0:
        newline = text.find("\n", position)
        end = newline if newline >= 0 else len(text)
        bare = text[text.rfind("\n", at, position) + 1 : end].strip()
        if not bare.strip(mark[0]):
            return end
        at = end
    return len(text)


def _interrupts(text: str, line: Span, running: BlockKind) -> bool:
    """Return True if `line` begins a new block directly below a block of the `running` kind."""
    kind = _kind(text, line)
    if running is BlockKind.TABLE:
        return "|" not in text[line.start : line.end] or kind not in (BlockKind.TABLE, BlockKind.PARAGRAPH)
    if running is BlockKind.PARAGRAPH and kind is BlockKind.ITEM:
        # A line of prose may begin with a year and a full stop, which looks like a list item.
        match = _ITEM.match(text, line.start)
        return match is not None and match[1] in (None, "1")
    return kind is not BlockKind.PARAGRAPH


def _underline(text: str, line: Span) -> Span | None:
    """Return the line of = or - below `line` that makes it a heading."""
    following = _line_below(text, line)
    if following is None:
        return None
    bare = text[following.start : following.end].strip()
    return following if not bare.strip("=") or not bare.strip("-") else None


def _is_ruled(text: str, line: Span) -> bool:
    """Return True if the line below `line` is the rule of a table's header."""
    following = _line_below(text, line)
    if following is None:
        return False
    bare = text[following.start : following.end].strip()
    return "-" in bare and "|" in bare and not bare.strip("|:- \t")


def _is_indented(text: str, start: int) -> bool:
    return text.startswith(("  ", "\t"), start)


def _line_below(text: str, line: Span) -> Span | None:
    """Return the line below `line` unless it is missing or blank."""
    start = line.end + 1
    newline = text.find("\n", start)
    end = newline if newline >= 0 else len(text)
    return Span(start, end) if text[start:end].strip() else None


def _next_line(text: str, at: int, end: int) -> Span | None:
    """Return the next line that is not blank, from its indentation (or `at`) to its end."""
    match = _NONBLANK.search(text, at, end)
    if match is None:
        return None
    newline = text.find("\n", match.start(), end)
    return Span(max(text.rfind("\n", at, match.start()) + 1, at), newline if newline >= 0 else end)

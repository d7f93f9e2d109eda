"""Hides the Markdown characters of a line that is still being written.

A line is rendered once it is complete. Until then it is plain text: parsing it with each frame would cost more than
everything else that streaming does.
"""

from __future__ import annotations

import re

# Lines that say nothing until they are complete: table rows, fences, formulas, and markers alone.
_UNREADABLE = re.compile(r"\s*(?:\||`{3}|~{3}|\$\$|\\\[)|[-+*#>=~`_\s]*\Z")
# Headings, quotations and list items; an item keeps the dash that it will have.
_BLOCK_MARKERS = re.compile(r"\s*(?:>\s?)*(?:#{1,6}\s+|([-+*])\s+)?")
# A link or image, complete or up to where the line ends; numbers in brackets are citations.
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)?|!?\[(?![\d, ]+(?:\]|\Z))([^\[\]]*)\]?\Z")
# Emphasis, deletion and code; an asterisk between digits is a product, an underscore within a word belongs to a name.
_INLINE = re.compile(
    r"(?<!\d)(?:\*{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|~~)(?!\d)|\*+\Z|`+|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)"
)
# The first row of a table, before the line that makes it one.
_FIRST_ROW = re.compile(r"(?:\A|\n) {0,3}\|[^\n]*\n?(?:[-|: \t]*\n?)?\Z")


def readable_line(line: str) -> str:
    """Return the line as it can be read before it is complete; "" if it cannot."""
    if _UNREADABLE.match(line):
        return ""
    line = _BLOCK_MARKERS.sub(lambda match: "– " if match[1] else "", line, count=1)
    return _INLINE.sub("", _LINK.sub(lambda match: match[1] or match[2] or "", line))


def without_first_row(text: str) -> str:
    """Return the complete lines of an open block without a last one that can be the first row of a table."""
    return _FIRST_ROW.sub("", text) if "|" in text else text

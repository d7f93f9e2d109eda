"""Extract plain text, source code and Markdown unchanged; headings of Markdown become markers."""

from __future__ import annotations

import re
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, normalise_text
from memory.documents.extraction.encoding import decode
from memory.documents.extraction.result import ExtractionLimits

_HASHES = re.compile(r" {0,3}(#{1,6})[ \t]+")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# A line with this beginning is not a paragraph, so an underline below it does not make it a heading.
_NOT_A_PARAGRAPH = re.compile(
    r"(?: {4}|\t|\s*$| {0,3}(?:[-+*>|]|\d+[.)])(?:\s|$)| {0,3}(?:#{1,6}\s|`{3}|~{3}|---|===))"
)


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the text of `file` unchanged."""
    builder.verbatim(normalise_text(decode(file.read())))


def read_markdown(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the Markdown in `file` unchanged, with its headings marked; the first is the title."""
    text = normalise_text(decode(file.read()))
    written = 0
    for at, level, words in headings(text):
        builder.verbatim(text[written:at])
        builder.heading(level, words)
        builder.title = builder.title or words
        written = at
    builder.verbatim(text[written:])


def headings(text: str) -> list[tuple[int, int, str]]:
    """Return the headings of Markdown outside of code: offset of the line, level and text."""
    found: list[tuple[int, int, str]] = []
    at, fence, paragraph = 0, "", (0, "")
    lines = text.split("\n")
    front_matter = lines[0].rstrip() == "---" and any(line.rstrip() == "---" for line in lines[1:100])
    for number, line in enumerate(lines):
        line_start, at = at, at + len(line) + 1
        if front_matter:
            front_matter = number == 0 or line.rstrip() != "---"
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif (opening := _FENCE.match(line)) and not (opening[1][0] == "`" and "`" in opening[2]):
            fence, paragraph = opening[1], (0, "")
        elif hashes := _HASHES.match(line):
            if words := _strip_closing_hashes(line[hashes.end() :]):
                found.append((line_start, len(hashes[1]), _plain(words)))
            paragraph = (0, "")
        elif paragraph[1] and (underline := _UNDERLINE.match(line)):
            found.append((paragraph[0], 1 if underline[1][0] == "=" else 2, _plain(paragraph[1])))
            paragraph = (0, "")
        else:
            # An underlined paragraph of several lines is not treated as a heading.
            paragraph = (line_start, line.strip()) if not paragraph[1] and not _NOT_A_PARAGRAPH.match(line) else (0, "")
    return found


def _strip_closing_hashes(words: str) -> str:
    """Return the text of a heading without closing hashes."""
    words = words.strip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare != words and bare[-1:] in ("", " ", "\t") else words


def _plain(words: str) -> str:
    """Return `words` without the markup of links, emphasis and code."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", words)
    return re.sub(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|`", "", words)

"""Find the ends of sentences in English, German, Chinese and Japanese; in doubt, two sentences stay joined."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.documents.chunking.graphemes import is_border
from memory.documents.chunking.spans import Span, next_nonblank, without_trailing_blank

# Each match begins at the end of the previous one and is greedy, so the scan is linear for any text.
_END = re.compile(r"""[.!?…。！？｡]+["'”’»›)\]}」』）】》*_`]*|\n\s*\n""")
_WIDE = re.compile(r"[。！？｡]")
_LAST_WORD = re.compile(r"\w*\Z")
_MAX_ABBREVIATION_LENGTH = 6
_ABBREVIATIONS = {
    "Dr", "Mr", "Mrs", "Ms", "Prof", "St", "No", "Fig", "vs", "cf", "pp", "Hr",
    "Fr", "Nr", "Abb", "Abs", "Art", "bzw", "ca", "ggf", "inkl", "usw", "vgl", "Mio",
}  # fmt: skip


def sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of `text[start:end]` in order, without white space between them. A blank line ends one."""
    at = next_nonblank(text, start, end)
    for found in _END.finditer(text, at, end):
        if found.start() >= at and _ends_sentence(text, found, end):
            stop = without_trailing_blank(text, at, found.end())
            if stop > at:
                yield Span(at, stop)
            at = next_nonblank(text, found.end(), end)
    if at < end:
        yield Span(at, without_trailing_blank(text, at, end))


def _ends_sentence(text: str, found: re.Match[str], end: int) -> bool:
    mark, end_of_mark = found[0], found.end()
    if mark[0] == "\n" or end_of_mark == end:
        return True
    if _WIDE.search(mark):
        return is_border(text, end_of_mark, found.start())
    if not text[end_of_mark].isspace():
        return False
    following = next_nonblank(text, end_of_mark, end)
    if following < end and text[following].islower():
        return False
    return mark != "." or not _is_abbreviation(
        text[max(0, found.start() - _MAX_ABBREVIATION_LENGTH - 1) : found.start()]
    )


def _is_abbreviation(text: str) -> bool:
    """Return True if a full stop after `text` belongs to its last word: "z. B.", "J. Doe", "Dr.", "am 3. Mai"."""
    found = _LAST_WORD.search(text)
    word = found[0] if found else ""
    return (len(word) == 1 and word.isalpha()) or (len(word) <= 2 and word.isdigit()) or word in _ABBREVIATIONS

"""Quoted text made inert: nothing in it can be taken for the frame around a recalled passage."""

from __future__ import annotations

import re
import unicodedata

# What opens a tag, or looks like it: also full-width, small and angle brackets.
_BRACKET = re.compile("[<\uff1c\ufe64\u2329\u27e8\u3008]")
_INERT_BRACKET = "‹"
# Characters looked at after a bracket: enough for the word with blanks and invisible characters in between.
_LOOKED_AT = 80
_WORD = "passage"
# A line of three or more of these separates what is recalled from the message.
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
_INERT_RULE = "· · ·"
_FRAME_WORDS = re.compile(r"^(\W*)(?=End of the recalled passages|Below are passages recalled)", re.MULTILINE | re.I)
_IN_ATTRIBUTES = str.maketrans({'"': "'", "<": "‹", ">": "›", "\uff1c": "‹", "\uff1e": "›", "\uff02": "'"})


def inert(text: str) -> str:
    """The text with every look-alike of a frame's tag, rule or sentence altered so that it is plainly part of a quotation."""
    text = _BRACKET.sub(lambda found: _INERT_BRACKET if _opens_a_tag(text, found.end()) else found[0], text)
    text = "\n".join(_INERT_RULE if _is_rule(line) else line for line in text.split("\n"))
    return _FRAME_WORDS.sub(r"\1“", text)


def inert_line(text: str) -> str:
    """The text as the value of an attribute, or as a name: on one line, without quotation marks, brackets and what is
    invisible."""
    shown = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text if not _is_invisible(c))
    return " ".join(shown.translate(_IN_ATTRIBUTES).split())


def _opens_a_tag(text: str, after: int) -> bool:
    """Whether the word of the frame's tags follows, in any case and width, with blanks or slashes before or in it."""
    seen = unicodedata.normalize("NFKC", text[after : after + _LOOKED_AT]).casefold()
    letters = "".join(c for c in seen if not (c.isspace() or _is_invisible(c) or c in "/\\\u2044\u2215"))
    return letters.startswith(_WORD)


def _is_rule(line: str) -> bool:
    bare = line.strip()
    if not bare or not (bare[0] in _DASHES or _is_invisible(bare[0])):
        return False
    dashes = [c for c in bare if not (c.isspace() or _is_invisible(c))]
    return len(dashes) >= 3 and _DASHES.issuperset(dashes)


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf"

"""Neutralise quoted text so that nothing in it can imitate the frame around a recalled passage or the result of a tool."""

from __future__ import annotations

import re
import unicodedata

# Opening brackets of tags and their look-alikes, also full-width and small variants and angle brackets.
_BRACKET = re.compile("[<\uff1c\ufe64\u2329\u27e8\u3008]")
_BRACKET_REPLACEMENT = "‹"
# Number of characters inspected after a bracket, enough for the word with blanks and invisible characters between.
_MAX_TAG_CHARS = 80
_TAG_NAMES = ("passage", "tool_result")
# A line of three or more of these looks like the separator between the recalled passages and the message.
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
_RULE_REPLACEMENT = "· · ·"
_FRAME_WORDS = re.compile(r"^(\W*)(?=End of the recalled passages|Below are passages recalled)", re.MULTILINE | re.I)
_ATTRIBUTE_REPLACEMENTS = str.maketrans({'"': "'", "<": "‹", ">": "›", "\uff1c": "‹", "\uff1e": "›", "\uff02": "'"})


def neutralise(text: str) -> str:
    """Return the text with imitations of a frame's tag, rule or sentence altered."""
    text = _BRACKET.sub(lambda found: _BRACKET_REPLACEMENT if _opens_frame_tag(text, found.end()) else found[0], text)
    text = "\n".join(_RULE_REPLACEMENT if _is_rule(line) else line for line in text.split("\n"))
    return _FRAME_WORDS.sub(r"\1“", text)


def neutralise_line(text: str) -> str:
    """Return the text as an attribute value or a name, on one line.

    Quotation marks and brackets are replaced; invisible characters are removed.
    """
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text if not _is_invisible(c))
    return " ".join(visible.translate(_ATTRIBUTE_REPLACEMENTS).split())


def _opens_frame_tag(text: str, start: int) -> bool:
    """Return True if the tag name of a frame follows at `start`.

    Matches any case and width, with blanks or slashes before or inside the name.
    """
    following = unicodedata.normalize("NFKC", text[start : start + _MAX_TAG_CHARS]).casefold()
    letters = "".join(c for c in following if not (c.isspace() or _is_invisible(c) or c in "/\\\u2044\u2215"))
    return letters.startswith(_TAG_NAMES)


def _is_rule(line: str) -> bool:
    bare = line.strip()
    if not bare or not (bare[0] in _DASHES or _is_invisible(bare[0])):
        return False
    dashes = [c for c in bare if not (c.isspace() or _is_invisible(c))]
    return len(dashes) >= 3 and _DASHES.issuperset(dashes)


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf"

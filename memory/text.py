"""Clean and parse incoming text, and make excerpts."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
import uuid
from typing import Any

_SPACES = re.compile(r"\s+")
# Markdown syntax that excerpts omit: fences, headings, quotes, bullets, table rules; bars of tables; emphasis and code.
# Nothing here tries a run of characters more than once, so that no text takes long.
_MARKS = re.compile(r"^[ \t]*+(?:`{3,}.*$|(?:#+|>+|[-+*])(?=\s))|^(?=[ \t|:-]*---)[ \t|:-]++$", re.MULTILINE)
# A row of a table begins and ends with a bar, unless it is cut at the end of the text. Bars in code and text stay.
_TABLE_ROW = re.compile(r"^[ \t]*+\|.*(?:\|[ \t]*+$|\Z)", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*])\*++(?=\S)|(?<=[^\s*])\*++(?!\w)|`+")
# The number of a recalled passage in an answer, not the text of a link.
_CITATION = re.compile(r" ?\[\d{1,2}\](?!\()")
# Embeddings, overrides and isolates of writing direction, which in a name would reorder the text around it.
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Letters and symbols that are invisible: fillers of Hangul, the empty pattern of Braille.
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def clean_text(text: str) -> str:
    r"""Return `text` in a form that every database, index and browser can store.

    NUL is removed (PostgreSQL refuses it). Surrogate pairs become their character and lone surrogates U+FFFD (they
    cannot be encoded). Line ends become `\n`.
    """
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(value: Any) -> Any:
    """Return the JSON value with clean texts. Raises ValueError for a number that JSON and databases do not know."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(name): clean_json(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not finite.")
    return value


def without_citations(text: str) -> str:
    """Return an answer without the numbers of its sources."""
    return _CITATION.sub("", text)


def parse_uuid(text: str) -> uuid.UUID | None:
    """Return the UUID in `text`, or None."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def parse_number(text: str) -> int | None:
    """Return a whole number of at most nine digits, None for any other text.

    Python raises ValueError for thousands of digits, and databases for numbers that their columns cannot store.
    """
    return int(text) if text.isdecimal() and len(text) < 10 else None


def has_visible_text(text: str) -> bool:
    """Return whether `text` has more than blanks, control and format characters and lone marks."""
    return any(unicodedata.category(char)[0] not in "CMZ" and char not in _BLANK_LETTERS for char in text)


def without_bidi_controls(text: str) -> str:
    """Return `text` without the characters that embed, override or isolate writing direction."""
    return _BIDI_CONTROLS.sub("", text)


def clean_name(text: str) -> str:
    """Return `text` as the name of a person, group or token; "" if nothing of it is visible.

    It is cleaned, on one line, and without characters that reverse the text around it.
    """
    name = " ".join(without_bidi_controls(clean_text(text)).split())
    return name if has_visible_text(name) else ""


def content_hash(*parts: str) -> str:
    """Return a hex SHA-256 over the lengths and contents of `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def excerpt(text: str, length: int = 160) -> str:
    """Return the beginning of `text` on one line without Markdown syntax, cut at a word after `length` characters."""
    line = one_line(text[: 4 * length])
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[length // 2 :] else cut) + "…"


def one_line(text: str) -> str:
    """Return `text` on one line without Markdown syntax."""
    text = _TABLE_ROW.sub(lambda row: row[0].replace("|", " "), _MARKS.sub(" ", text))
    return _SPACES.sub(" ", strip_inline_markdown(text)).strip()


def strip_inline_markdown(text: str) -> str:
    """Return `text` without the syntax of emphasis and code; lines are kept."""
    return _EMPHASIS.sub("", text)

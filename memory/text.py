"""The one cleaning that every text passes on its way in, and the excerpts that leave."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid

_SPACES = re.compile(r"\s+")
# Markdown's marks, which say nothing in an excerpt: fences, headings, quotes, bullets, table rules; emphasis and code.
_MARKS = re.compile(r"^\s*`{3,}.*$|^[\s|:-]*-{3}[\s|:-]*$|^\s*(?:#+|>+|[-+*])(?=\s)|\|+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*])\*+(?=\S)|(?<=\S)\*+(?![\w*])|`+")

# Embeddings, overrides and isolates of writing direction: in a name they would reorder what stands beside it.
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Letters and symbols that fonts draw as nothing: fillers of Hangul, the empty pattern of Braille.
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def clean_text(text: str) -> str:
    """Return `text` as every database, index and browser can hold it.

    NUL goes (PostgreSQL refuses it), surrogate pairs become their character and lone ones U+FFFD (no encoder takes
    them), line ends become `\\n`.
    """
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse_uuid(text: str) -> uuid.UUID | None:
    """The id that `text` is, or None."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def has_visible_text(text: str) -> bool:
    """Return whether `text` shows anything: more than blanks, control and format characters and lone marks."""
    return any(unicodedata.category(char)[0] not in "CMZ" and char not in _BLANK_LETTERS for char in text)


def without_bidi_controls(text: str) -> str:
    """Return `text` without the characters that embed, override or isolate writing direction."""
    return _BIDI_CONTROLS.sub("", text)


def clean_name(text: str) -> str:
    """Return `text` as the name of a person, a group or a token: cleaned, on one line, without characters that reverse
    the text around it; "" if nothing of it is visible."""
    name = " ".join(without_bidi_controls(clean_text(text)).split())
    return name if has_visible_text(name) else ""


def content_hash(*parts: str) -> str:
    """A hex SHA-256 over the lengths and contents of `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def excerpt(text: str, length: int = 160) -> str:
    """The beginning of `text` on one line without Markdown's marks, at most `length` characters, cut at a word where there is one."""
    line = _SPACES.sub(" ", strip_inline_markdown(_MARKS.sub(" ", text[: 4 * length]))).strip()
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[length // 2 :] else cut) + "…"


def strip_inline_markdown(text: str) -> str:
    """`text` without the marks of emphasis and code, its lines as they are."""
    return _EMPHASIS.sub("", text)

"""The one cleaning that every text passes on its way in, and the excerpts that leave."""

from __future__ import annotations

import hashlib
import re

_SPACES = re.compile(r"\s+")
# Markdown's marks, which say nothing in an excerpt: fences, headings, quotes, bullets, table rules; emphasis and code.
_MARKS = re.compile(r"^\s*`{3,}.*$|^[\s|:-]*-{3}[\s|:-]*$|^\s*(?:#+|>+|[-+*])(?=\s)|\|+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*])\*+(?=\S)|(?<=\S)\*+(?![\w*])|`+")


def clean_text(text: str) -> str:
    """Return `text` as every database, index and browser can hold it.

    NUL goes (PostgreSQL refuses it), surrogate pairs become their character and lone ones U+FFFD (no encoder takes
    them), line ends become `\\n`.
    """
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def content_hash(*parts: str) -> str:
    """A hex SHA-256 over the lengths and contents of `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def excerpt(text: str, length: int = 160) -> str:
    """The beginning of `text` on one line without Markdown's marks, at most `length` characters, cut at a word where there is one."""
    line = _SPACES.sub(" ", plain(_MARKS.sub(" ", text[: 4 * length]))).strip()
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[length // 2 :] else cut) + "…"


def plain(text: str) -> str:
    """`text` without the marks of emphasis and code, its lines as they are."""
    return _EMPHASIS.sub("", text)

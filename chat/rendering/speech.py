"""An answer as text to be read aloud: without the marks of Markdown, citations, code and formulas, in parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from chat.rendering.block_splitting import Splitter
from chat.rendering.markdown import MAX_BLOCK_CHARS

MAX_PART_CHARS = 4_096  # what endpoints accept at once
# The first part is short, so that reading begins soon.
_FIRST_PART_CHARS = 400
_CITED = re.compile(r" ?\[\d{1,2}(?:, ?\d{1,2})*\](?!\()")
_FORMULA = re.compile(r"\$\$[^$]{1,2000}\$\$")
_SENTENCE_END = re.compile(r"[.!?…:;](?=\s)|[。！？]|\n")
_ENDS_SENTENCE = re.compile(r"[.!?…:;,。！？]$")
_md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def speech_parts(answer: str) -> list[str]:
    """Return the text of an answer in parts of at most `MAX_PART_CHARS`, which end with a sentence where they can."""
    rest = "\n".join(_spoken_lines(answer))
    parts: list[str] = []
    while rest:
        part, rest = _split(rest, MAX_PART_CHARS if parts else _FIRST_PART_CHARS)
        parts.append(part)
    return parts


def _split(text: str, limit: int) -> tuple[str, str]:
    if len(text) <= limit:
        return text, ""
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, limit)]
    end = ends[-1] if ends else text.rfind(" ", 0, limit) + 1 or limit
    return text[:end].strip(), text[end:].strip()


def _spoken_lines(answer: str) -> Iterator[str]:
    splitter = Splitter()
    blocks = [block for line in _FORMULA.sub("", answer).splitlines(keepends=True) for block in splitter.feed(line)]
    for block in [*blocks, *splitter.close()]:
        if len(block.text) > MAX_BLOCK_CHARS:
            # The worst case of the parser is not linear.
            yield block.text
            continue
        yield from _lines_of(_md.parse(block.head + block.text))


def _lines_of(tokens: list[Token]) -> Iterator[str]:
    """Yield the texts of a block, one for each paragraph, heading, item and row of a table."""
    row: list[str] | None = None
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row:
            yield _as_sentence(", ".join(row))
            row = None
        elif token.type == "inline":
            text = _CITED.sub("", "".join(map(_text_of, token.children or []))).strip()
            if not text:
                continue
            if row is not None:
                row.append(text)
            else:
                yield _as_sentence(text)


def _text_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline", "image") else ""


def _as_sentence(text: str) -> str:
    """End a heading, list item or row like a sentence, so that there is a pause after it."""
    return text if _ENDS_SENTENCE.search(text) else f"{text}."

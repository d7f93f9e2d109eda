"""Mark the words of a text that a query asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.lexical.analyser import analyse, detect_language, query_terms, stem, words_at
from memory.text import one_line

# Characters before the first marked word in an excerpt, at most a third of it.
_BEFORE = 80
# Characters of the text that are considered, as a multiple of an excerpt's length: Markdown syntax is left out of them.
_WINDOW = 4


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text, marked if it is a word that the query asks for."""

    text: str
    is_marked: bool


def marked_excerpt(text: str, query: str, length: int) -> list[TextPart]:
    """Return an excerpt of at most `length` characters besides its ellipses, without Markdown syntax, as parts in order.

    It begins near the first word of the query in the text, or at the beginning of the text. Words are compared as the
    keyword search does, by their stems in the language of the text or of the query.
    """
    before = min(_BEFORE, length // 3)
    first, _end = next(_words_of_query(text, query), (0, 0))
    # Markdown syntax stands at the beginning of lines, so the line of the word is included, unless it is long.
    begin = text.rfind("\n", 0, max(0, first - before)) + 1
    if first - begin > length:
        begin = max(first - length, text.find(" ", first - length, first) + 1)
    window = text[begin : first + _WINDOW * length]
    line = one_line(window)
    spans = _spans(line, query)
    start = spans[0][0] if spans else 0
    start = 0 if start + before < length else line.rfind(" ", 0, start - before) + 1
    end = len(line) if len(line) <= start + length else max(line.rfind(" ", start, start + length), start + length // 2)
    is_cut = end < len(line) or bool(text[begin + len(window) :].strip())
    parts = [TextPart("… ", False)] if start or text[:begin].strip() else []
    at = start
    for first, last in spans:
        if start <= first and last <= end:
            parts += [TextPart(line[at:first], False), TextPart(line[first:last], True)]
            at = last
    parts.append(TextPart(line[at:end] + (" …" if is_cut else ""), False))
    return [part for part in parts if part.text]


def contains_all_words(text: str, query: str) -> bool:
    """Return True if the text has every word of the query, compared by stems; False for a query of stop words alone."""
    terms = query_terms(query)
    return bool(terms) and terms.keys() <= set(analyse(text))


def _spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return the begin and end of each word of the query in the text, those that touch as one."""
    spans: list[tuple[int, int]] = []
    for start, end in _words_of_query(text, query):
        if spans and spans[-1][1] >= start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _words_of_query(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each word of the query in the text."""
    terms, language_of_query = _analyse_query(query)
    languages = {detect_language(text), language_of_query}
    for start, end in words_at(text):
        word = text[start:end].casefold()
        if word in terms or any(stem(word, language) in terms for language in languages):
            yield start, end


# A page has a hundred excerpts for one query.
@lru_cache(maxsize=16)
def _analyse_query(query: str) -> tuple[frozenset[str], str]:
    """Return the terms of the query and its language."""
    return frozenset(query_terms(query)), detect_language(query)

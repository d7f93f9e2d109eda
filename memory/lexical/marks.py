"""Mark the words of a text that a query asks for."""

from __future__ import annotations

from dataclasses import dataclass

from memory.lexical.analyser import analyse, detect_language, query_terms, stem, words_at

# Characters before the first marked word in an excerpt.
_BEFORE = 80


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text, marked if it is a word that the query asks for."""

    text: str
    is_marked: bool


def marked_excerpt(text: str, query: str, length: int) -> list[TextPart]:
    """Return an excerpt of at most `length` characters besides its ellipses, as parts in order.

    It begins near the first word of the query in the text, or at the beginning of the text. Words are compared as the
    keyword search does, by their stems in the language of the text or of the query.
    """
    text = " ".join(text.split())
    spans = _spans(text, query)
    start = spans[0][0] if spans else 0
    start = 0 if start + _BEFORE < length else text.rfind(" ", 0, start - _BEFORE) + 1
    end = len(text) if len(text) <= start + length else max(text.rfind(" ", start, start + length), start + length // 2)
    parts = [TextPart("… ", False)] if start else []
    at = start
    for first, last in spans:
        if start <= first and last <= end:
            parts += [TextPart(text[at:first], False), TextPart(text[first:last], True)]
            at = last
    parts.append(TextPart(text[at:end] + (" …" if end < len(text) else ""), False))
    return [part for part in parts if part.text]


def contains_all_words(text: str, query: str) -> bool:
    """Return True if the text has every word of the query, compared by stems; False for a query of stop words alone."""
    terms = query_terms(query)
    return bool(terms) and terms.keys() <= set(analyse(text))


def _spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return the begin and end of each word of the query in the text, those that touch as one."""
    terms = query_terms(query)
    languages = {detect_language(text), detect_language(query)}
    spans: list[tuple[int, int]] = []
    for start, end in words_at(text):
        word = text[start:end].casefold()
        if word in terms or any(stem(word, language) in terms for language in languages):
            if spans and spans[-1][1] >= start:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
    return spans

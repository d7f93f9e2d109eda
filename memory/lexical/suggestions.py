"""Spelling suggestions: words of readable texts for words of a query that no readable text contains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from django.db.models import Exists, OuterRef, QuerySet

from memory.lexical import postings
from memory.lexical.analyser import detect_language, query_terms, stem, words_at
from memory.models import Exchange, LexicalEntry
from memory.spaces.access import SpaceIds, in_spaces

# Bounds of one suggestion: the newest readable rows whose terms are compared, the steps of comparing all terms with one
# word, the unknown words, and the terms whose texts are read for the word itself. Half a million terms take some 0.2 s,
# a million steps .3 s: a text of similar words would otherwise slow the searches of others.
_MAX_ROWS, _MAX_CHARS = 2_000, 3_000_000
_MAX_STEPS = 2_000_000
_MAX_WORDS = 3
_MAX_TERMS = 10
_MAX_TEXTS = 3
_MIN_LENGTH, _LONG = 4, 8


def suggest_query(typed: str, text: str, spaces: SpaceIds) -> str:
    """Return `typed` with unknown words of `text` replaced by similar ones of texts in `spaces`; "" without any.

    One edit is allowed in a word of 4 to 7 letters, two in a longer one; two exchanged neighbours are one edit.
    """
    words = {term: word for term, word in query_terms(text).items() if len(word) >= _MIN_LENGTH and word.isalpha()}
    known = postings.terms_in_spaces(words, spaces)
    unknown = [(term, word.casefold()) for term, word in words.items() if term not in known][:_MAX_WORDS]
    counts = _count_terms(spaces) if unknown else Counter[str]()
    suggested = typed
    for term, word in unknown:
        if similar := _similar_word(term, word, counts, spaces):
            suggested = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", similar, suggested, flags=re.IGNORECASE)
    return suggested if suggested != typed else ""


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the number of edits from one word to the other (optimal string alignment), `limit` + 1 if it is larger."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, char in enumerate(one, start=1):
        line = [row]
        for column, other_char in enumerate(other, start=1):
            least = min(last[column] + 1, line[-1] + 1, last[column - 1] + (char != other_char))
            is_swap = row > 1 and column > 1 and char == other[column - 2] and one[row - 2] == other_char
            line.append(min(least, before[column - 2] + 1) if is_swap else least)
        if min(line) > limit:
            return limit + 1
        before, last = last, line
    return min(last[-1], limit + 1)


def _count_terms(spaces: SpaceIds) -> Counter[str]:
    """Return in how many of the newest readable rows each term is."""
    counts: Counter[str] = Counter()
    size = 0
    newest = _in_readable(LexicalEntry.objects.all(), spaces).order_by("-id")
    for terms in newest.values_list("terms", flat=True)[:_MAX_ROWS].iterator():
        counts.update(set(terms.split()))
        size += len(terms)
        if size > _MAX_CHARS:
            break
    return counts


def _in_readable(rows: QuerySet[LexicalEntry], spaces: SpaceIds) -> QuerySet[LexicalEntry]:
    """Return those of `rows` whose exchanges can be found in these spaces."""
    findable = in_spaces(Exchange.objects.findable().filter(pk=OuterRef("exchange")), spaces)
    return in_spaces(rows, spaces).filter(Exists(findable))


def _similar_word(term: str, word: str, counts: Counter[str], spaces: SpaceIds) -> str:
    """Return the word nearest to this one, of equally near ones the most frequent; "" if none is near enough."""
    limit = 2 if len(word) >= _LONG else 1
    # One edit of a word can be two of its stem: "mored" has the stem of "more".
    of_stems = limit + 1
    letters = set(term)
    similar = (
        other
        for other in counts
        if abs(len(other) - len(term)) <= of_stems and len(letters.symmetric_difference(other)) <= 2 * of_stems
    )
    near = [
        (distance, -counts[other], other)
        for other in islice(similar, _MAX_STEPS // len(term) ** 2)
        if (distance := edit_distance(term, other, of_stems)) <= of_stems
    ]
    for _distance, _count, other in sorted(near)[:_MAX_TERMS]:
        if found := _word_in_texts(other, word, limit, spaces):
            return found
    return ""


def _word_in_texts(term: str, word: str, limit: int, spaces: SpaceIds) -> str:
    """Return the word nearest to `word` that has this term in one of the newest readable texts, "" without one."""
    rows = _in_readable(postings.rows_with_all_terms([term]), spaces).order_by("-id")
    ids = list(rows.values_list("exchange_id", flat=True)[:_MAX_TEXTS])
    found = [
        (edit_distance(word, other, limit), other)
        for exchange in in_spaces(Exchange.objects.findable().filter(pk__in=ids), spaces).select_related("owner")
        for other in _words_with_term(exchange, term)
    ]
    distance, nearest = min(found, default=(limit + 1, ""))
    return nearest if distance <= limit else ""


def _words_with_term(exchange: Exchange, term: str) -> Iterator[str]:
    """Yield the words of an exchange that the analyser makes this term, in lower case."""
    texts = (f"{exchange.owner} {exchange.source_file}", exchange.user_message, exchange.assistant_message)
    for text in texts:
        language = detect_language(text)
        words = {text[start:end].casefold() for start, end in words_at(text)}
        yield from sorted(word for word in words if stem(word, language) == term)

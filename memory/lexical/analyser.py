"""The analyser: convert text to the terms that are stored, searched and scored.

Text is normalised to NFKC, case-folded, split at everything but letters and digits, stemmed, and stripped of accents.
Scripts without spaces between words become pairs of characters.

A text is stemmed in the language whose stop words are most frequent in it, English if it has none. Measured on English
questions, one stemmer for all languages, or all of them in turn, found .5 to 1 % less. A word stemmed in the wrong
language is still found by prefix or by a shorter form (memory.lexical.postings).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache

import Stemmer

from memory.lexical.stop_words import STOP_WORDS

# Han, kana, hangul; Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]")
_MAX_TERM_LENGTH = 40
# Maximum number of terms per exchange. A longer text is found by its beginning, and by its vectors.
MAX_TERMS = 20_000

_MONTHS = (
    "january januar janvier enero",
    "february februar février febrero",
    "march märz mars marzo",
    "april april avril abril",
    "may mai mai mayo",
    "june juni juin junio",
    "july juli juillet julio",
    "august august août agosto",
    "september september septembre septiembre",
    "october oktober octobre octubre",
    "november november novembre noviembre",
    "december dezember décembre diciembre",
)
# PyStemmer objects are not thread-safe.
_thread_local = threading.local()


def analyse(text: str) -> list[str]:
    """Return the terms of `text` in order, at most MAX_TERMS."""
    words = _words(text)[:MAX_TERMS]
    return _terms(words, _language_of(words))[:MAX_TERMS]


def date_terms(day: datetime) -> list[str]:
    """Return the terms that name a day: the day of the month, the month in four languages, and the year."""
    return list(_terms_of_day(day.year, day.month, day.day))


@lru_cache(maxsize=10_000)
def _terms_of_day(year: int, month: int, day: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(analyse(f"{day} {_MONTHS[month - 1]} {year}")))


def query_terms(text: str) -> dict[str, str]:
    """Return the terms to search for, each with its original word, without stop words of the detected language.

    A text of stop words alone gives no terms.
    """
    words = _words(text)
    language = _language_of(words)
    terms: dict[str, str] = {}
    for word in words:
        if word.casefold() not in STOP_WORDS[language]:
            for term in _terms([word], language):
                terms.setdefault(term, word if len(word) <= _MAX_TERM_LENGTH else term)
    return terms


def detect_language(text: str) -> str:
    """Return the language of STOP_WORDS whose stop words are most frequent in `text`; English if there are none."""
    return _language_of(_words(text))


def separates_words(char: str) -> bool:
    """Return True for a letter or digit of a script with spaces between words."""
    return char.isalnum() and not _UNSPACED_RUN.match(char)


def words_at(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each word of `text`, and of each pair of characters in a script without spaces."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        if _UNSPACED_RUN.match(match[0]) and end - start > 2:
            yield from ((at, at + 2) for at in range(start, end - 1))
        else:
            yield start, end


def _words(text: str) -> list[str]:
    return _RUN.findall(unicodedata.normalize("NFKC", text))


def _language_of(words: Iterable[str]) -> str:
    folded = [word.casefold() for word in words]
    counts = {language: sum(map(listed.__contains__, folded)) for language, listed in STOP_WORDS.items()}
    return max(counts, key=lambda language: counts[language])  # on a tie the first language, English


def _terms(words: Iterable[str], language: str) -> list[str]:
    terms: list[str] = []
    for word in words:
        if _UNSPACED_RUN.match(word):
            terms += (word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            terms.append(stem(word.casefold()[:_MAX_TERM_LENGTH], language))
    return terms


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """Return the term of a case-folded word; `language` is a key of STOP_WORDS."""
    if not hasattr(_thread_local, "stemmers"):
        _thread_local.stemmers = {name: Stemmer.Stemmer(name) for name in STOP_WORDS}
    stemmed: str = _thread_local.stemmers[language].stemWord(word)
    if stemmed.isascii():
        return stemmed
    return "".join(char for char in unicodedata.normalize("NFKD", stemmed) if not unicodedata.combining(char))

"""Checks a statement that a model wrote: what it names, counts and dates must be in its sources."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.knowledge.stated_dates import states_date
from memory.lexical.analyser import analyse, detect_language, separates_words, stem
from memory.retrieval.dates import split_dates
from memory.retrieval.rare_words import rarities

# From this rarity on (0 for common, 1 for rare words) a word is taken for a name, and from the second one if it has a
# capital letter that may have another reason: it begins a sentence, or the text is German. "Bergmann" has .2.
_RARE, _RARE_CAPITALISED = 0.5, 0.15
# The share of the pairs of characters that must occur, in a script without spaces between words.
_MIN_PAIRS = 0.5
_NUMBER = re.compile(r"\d+(?:[.,:'’\u00a0\u202f]\d+)*")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# The beginning of a word that is compared: names take endings in many languages.
_MIN_STEM = 4


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a source with its date, its author's name and the title of its thread."""

    text: str
    said_at: datetime
    author: str
    title: str = ""


def unsupported_part(
    statement: str,
    sources: Sequence[SourceText],
    get_log_probabilities: Callable[[Sequence[str]], list[float] | None],
    *,
    written_at: datetime,
) -> str:
    """Return the number, date or name of the statement that none of its sources has; "" if all are supported.

    A date without a year in the statement is the last one before `written_at`.
    Rare words and words with a capital letter count as names. In scripts without spaces between words, where names cannot
    be told, half of the pairs of characters must occur.
    """
    dates, rest = split_dates(statement, written_at)
    if not all(any(states_date(source.text, source.said_at, date) for source in sources) for date in dates):
        return statement
    said = _folded(" ".join(f"{source.text} {source.author} {source.title}" for source in sources))
    numbers = {_digits(number) for number in _NUMBER.findall(said)}
    for number in _NUMBER.findall(_folded(rest)):
        if _digits(number) not in numbers:
            return str(number)
    pairs = [term for term in analyse(rest) if len(term) == 2 and not separates_words(term[0])]
    if sum(pair in said for pair in pairs) < _MIN_PAIRS * len(pairs):
        return statement
    return next((name for name in _names(rest, get_log_probabilities) if not _occurs(name, said)), "")


def _names(text: str, get_log_probabilities: Callable[[Sequence[str]], list[float] | None]) -> list[str]:
    found = [match for match in _WORD.finditer(text) if separates_words(match.group()[0])]
    rarity = rarities([match.group() for match in found], get_log_probabilities)
    is_german = detect_language(text) == "german"
    names = []
    for match, rare in zip(found, rarity, strict=True):
        is_capitalised = match.group()[0].isupper()
        is_first = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1:] in ".!?:"
        has_other_reason = is_first or is_german
        if rare >= (_RARE_CAPITALISED if is_capitalised else _RARE) or (is_capitalised and not has_other_reason):
            names.append(match.group())
    return names


def _occurs(name: str, folded_text: str) -> bool:
    folded = _folded(name)
    beginning = stem(folded, detect_language(folded_text))
    return (beginning if len(beginning) >= _MIN_STEM else folded) in folded_text


def _digits(number: str) -> str:
    """Return a number without separators of thousands, and with a point before decimals."""
    whole, separator, end = re.sub(r"['’\u00a0\u202f]", "", number).replace(",", ".").rpartition(".")
    if separator and len(end) != 3:
        return f"{whole.replace('.', '')}.{end}"
    return (whole + end).lstrip("0") or "0"


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))

"""BM25, once, for every database: how much the words of an exchange say about the words of a question.

The formula is Lucene's (Robertson's without the constant factor): the idf of a term, ln(1 + (N - n + .5) / (n + .5)),
times tf / (tf + k1 (1 - b + b length / mean length)). k1 and b were chosen on conversations: short texts, in which a
word said twice says little more than said once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# Among three exchanges a word that two of them hold is not common yet.
FEWEST = 100
_K1 = 0.9
_B = 0.3


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of a question, the word it was, and how rare it is; `is_prefix`: whatever begins with it counts."""

    term: str
    word: str
    idf: float
    is_prefix: bool = False


def idf(documents: int, holding: int) -> float:
    """The weight of a term that `holding` of `documents` hold; in a small corpus, as if it were one of FEWEST."""
    return math.log(1 + (max(documents, holding, FEWEST) - holding + 0.5) / (holding + 0.5))


def frequencies(asked: Sequence[QueryTerm], texts: Sequence[str]) -> Numbers:
    """How often each text's terms (separated by spaces) hold each term that is asked, as (texts, terms)."""
    looked_for = [(column, ask.term, _between_spaces(ask)) for column, ask in enumerate(asked)]
    found = np.zeros((len(texts), len(asked)))
    for row, text in enumerate(texts):
        padded = ""
        for column, term, between in looked_for:
            # Most texts hold few of the terms, which is told in half the time of counting.
            if term in text:
                # What is counted stands between spaces of its own, or a doubled word would count once.
                padded = padded or f" {text.replace(' ', '  ')} "
                found[row, column] = padded.count(between)
    return found


def matching_terms(text: str, asked: Iterable[QueryTerm]) -> list[QueryTerm]:
    """Those of the terms that are asked which a text's terms (separated by spaces) hold."""
    padded = f" {text} "
    return [ask for ask in asked if _between_spaces(ask) in padded]


def _between_spaces(ask: QueryTerm) -> str:
    return f" {ask.term}" if ask.is_prefix else f" {ask.term} "


def normalised_scores(asked: Sequence[QueryTerm], tf: Numbers, lengths: Numbers, mean_length: float) -> Numbers:
    """What texts say of what their words could say at most (texts,), from 0 to 1.

    The mean of BM25 and of the weight of the terms that occur at all, both divided by the weight of all terms that are
    asked: so a chance word does not look like an answer. `tf` is (texts, terms), `lengths` (texts,).
    """
    weights = np.array([ask.idf for ask in asked])
    if not weights.sum():
        return np.zeros(len(lengths))
    norm = _K1 * (1 - _B + _B * lengths / max(mean_length, 1.0))
    said = (tf / (tf + norm[:, None])) @ weights
    covered = (tf > 0) @ weights
    result: Numbers = (said + covered) / 2 / weights.sum()
    return result

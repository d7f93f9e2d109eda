"""BM25 scores, computed in Python so that they are equal on every database.

The formula is Lucene's, which is Robertson's without the constant factor. The idf of a term is ln(1 + (N - n + .5) / (n
+ .5)). It is multiplied by tf / (tf + k1 (1 - b + b length / mean length)). k1 and b were tuned on conversations: short
texts, in which a repeated word adds little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# Minimum corpus size for the idf. In a corpus of three exchanges, a term in two of them is not yet common.
MIN_DOCUMENTS = 100
_K1 = 0.9
_B = 0.3


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A query term with its original word and its idf. `is_prefix`: the term matches everything that begins with it."""

    term: str
    word: str
    idf: float
    is_prefix: bool = False


def idf(documents: int, document_frequency: int) -> float:
    """Return the weight of a term in `document_frequency` of `documents` texts; at least MIN_DOCUMENTS texts are assumed."""
    return math.log(
        1 + (max(documents, document_frequency, MIN_DOCUMENTS) - document_frequency + 0.5) / (document_frequency + 0.5)
    )


def term_frequencies(query_terms: Sequence[QueryTerm], texts: Sequence[str]) -> Numbers:
    """Return how often each text contains each query term, shape (texts, terms).

    `texts` are terms separated by spaces.
    """
    patterns = [(column, query_term.term, _pattern(query_term)) for column, query_term in enumerate(query_terms)]
    counts = np.zeros((len(texts), len(query_terms)))
    for row, text in enumerate(texts):
        padded = ""
        for column, term, pattern in patterns:
            # Most texts contain few of the terms. This check takes half the time of counting.
            if term in text:
                # Double the spaces, because adjacent matches cannot share one: a repeated word would count once.
                padded = padded or f" {text.replace(' ', '  ')} "
                counts[row, column] = padded.count(pattern)
    return counts


def matching_terms(text: str, query_terms: Iterable[QueryTerm]) -> list[QueryTerm]:
    """Return the query terms that occur in a text, given as terms separated by spaces."""
    padded = f" {text} "
    return [query_term for query_term in query_terms if _pattern(query_term) in padded]


def _pattern(query_term: QueryTerm) -> str:
    return f" {query_term.term}" if query_term.is_prefix else f" {query_term.term} "


def normalised_scores(query_terms: Sequence[QueryTerm], tf: Numbers, lengths: Numbers, mean_length: float) -> Numbers:
    """Return lexical scores from 0 to 1, shape (texts,), relative to the maximum possible score.

    The score is the mean of BM25 and the total idf of the matching terms, both divided by the total idf of all query
    terms. So a chance match scores low. `tf` has shape (texts, terms), `lengths` (texts,).
    """
    weights = np.array([query_term.idf for query_term in query_terms])
    if not weights.sum():
        return np.zeros(len(lengths))
    norm = _K1 * (1 - _B + _B * lengths / max(mean_length, 1.0))
    bm25 = (tf / (tf + norm[:, None])) @ weights
    covered = (tf > 0) @ weights
    result: Numbers = (bm25 + covered) / 2 / weights.sum()
    return result

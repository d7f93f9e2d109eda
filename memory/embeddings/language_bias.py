"""Reduce the part of a vector that depends only on the language of its text.

Multilingual models place texts of one language near each other, so that a question finds an unrelated text in its own
language before its answer in another. The differences between the mean vectors of parallel sentences span the
directions that carry the language alone (Yang et al. 2021, "A simple and effective method to eliminate the
self-language bias in multilingual representations"). Removing them entirely makes questions within one language find
fewer answers, since most are in the language of the question. docs/decisions/0009-the-multilingual-model.md has the
figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory.embeddings.base import Vectors, normalise

if TYPE_CHECKING:
    from memory.embeddings.base import Embedder

# The same sentences in 14 languages.
_SENTENCES = Path(__file__).with_name("parallel_sentences.json")
# Share of the language's part that is removed.
_REMOVED_SHARE = 0.5


def find_directions(embedder: Embedder) -> Vectors:
    """Return orthonormal directions (languages - 1, dimension) in which the model's vectors differ by language."""
    by_language: dict[str, list[str]] = json.loads(_SENTENCES.read_text(encoding="utf-8"))
    means = []
    for sentences in by_language.values():
        vectors = [embedder.embed_documents(sentences), embedder.embed_queries(sentences)]
        means.append(np.concatenate(vectors).mean(axis=0))
    differences = np.array(means) - np.mean(means, axis=0)
    directions: Vectors = np.linalg.svd(differences, full_matrices=False)[2][: len(means) - 1].astype(np.float32)
    return directions


def reduce_language(vectors: Vectors, directions: Vectors) -> Vectors:
    """Return the vectors (texts, dimension) without _REMOVED_SHARE of the language's part, scaled to length 1."""
    reduced: Vectors = (vectors - _REMOVED_SHARE * (vectors @ directions.T) @ directions).astype(np.float32)
    return normalise(reduced)

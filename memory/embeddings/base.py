"""The interface of embedding models: texts in, one vector of length 1 for each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Prefixes:
    """The prefixes that a model expects before a query and before a document."""

    query: str = ""
    document: str = ""


class Embedder(Protocol):
    """An embedding model. It can be used from several threads."""

    provider: str
    model: str

    @property
    def dimension(self) -> int:
        """Return the length of a vector, which may need one request. Raises EmbeddingError."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension), rows in the order of the texts. Raises EmbeddingError."""

    def embed_query(self, text: str) -> Vectors:
        """Return one vector (dimension,) to search with. Raises EmbeddingError."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension) of vectors to search with. Raises EmbeddingError."""

    def log_probabilities(self, words: Sequence[str]) -> list[float] | None:
        """Return the natural logarithm of each word's probability, None if the model tells none. Raises EmbeddingError."""

    def close(self) -> None:
        """Free the model's resources; the next call acquires them again."""


def normalise(vectors: Vectors) -> Vectors:
    """Return the vector, or each row, scaled to length 1, so that a dot product is the cosine; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result

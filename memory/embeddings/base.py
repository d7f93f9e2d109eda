"""What every embedding model offers: texts in, one vector of length 1 for each out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """A model that embeds. Safe to call from several threads."""

    provider: str
    model: str

    @property
    def dimension(self) -> int:
        """The length of a vector; a remote model may have to be asked once. Raises EmbeddingError."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """An array (texts, dimension), rows in the order of the texts. Raises EmbeddingError."""

    def embed_query(self, text: str) -> Vectors:
        """One vector (dimension,) to search with. Raises EmbeddingError."""

    def close(self) -> None:
        """Free what the model holds; the next call takes it again."""


def normalised(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1, so that a dot product is the cosine; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result

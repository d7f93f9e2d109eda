"""Embed texts for API clients with the configured model; neither texts nor vectors are stored."""

from __future__ import annotations

from collections.abc import Sequence

from memory import embeddings
from memory.embeddings.base import Vectors
from memory.index.embedding_policy import ensure_embeddable
from memory.models import Space
from memory.text import clean_text


def embedding_model() -> str:
    """Return the name of the configured model without loading it."""
    return embeddings.configured_model()[1]


def embed(texts: Sequence[str], *, space: Space) -> Vectors:
    """Return one vector of length 1 for each text, in the same order. The texts count as text of `space`.

    Raises EmbeddingError.
    """
    embedder = embeddings.get_embedder()
    ensure_embeddable(space, provider=embedder.provider)
    return embedder.embed_documents([clean_text(text) for text in texts])

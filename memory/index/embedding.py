"""Embedding texts for whoever asks, with the model that is configured; nothing of it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from memory import embeddings
from memory.embeddings.base import Vectors
from memory.text import clean_text


def embedding_model() -> str:
    """The name of the configured model; loads nothing."""
    return embeddings.configured_model(settings.CATO.vector_store)[1]


def embed(texts: Sequence[str]) -> Vectors:
    """One vector of length 1 for each text, in their order. Raises EmbeddingError."""
    return embeddings.get_embedder(settings.CATO.vector_store).embed_documents([clean_text(text) for text in texts])

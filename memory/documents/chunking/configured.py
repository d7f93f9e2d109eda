"""Split text with the configured strategy and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from memory.documents.chunking import Span, split


def split_as_configured(text: str, *, strategy: str | None = None, chunk_overlap: int | None = None) -> Iterator[Span]:
    """Return the spans of `text` as `split` does; `strategy` and `chunk_overlap` replace the configured ones."""
    conf = settings.CATO.vector_store
    return split(
        text,
        strategy=strategy or conf.chunking_strategy,
        chunk_size=conf.chunk_size,
        chunk_overlap=conf.chunk_overlap if chunk_overlap is None else chunk_overlap,
        max_chunk_size=conf.max_chunk_size,
        preserve_sentence_boundaries=conf.preserve_sentence_boundaries,
    )

"""Cache vectors: those of documents in SQL by content hash, those of queries in memory in a bounded number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import numpy as np
from django.db.models import Exists, OuterRef
from numpy.typing import NDArray

from memory.embeddings.base import Embedder
from memory.models import CachedEmbedding, Exchange

_MAX_QUERIES = 512
_queries: OrderedDict[tuple[str, str, str], NDArray[np.float32]] = OrderedDict()
_lock = threading.Lock()


def get_documents(provider: str, model: str, hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Return the cached vectors (parts, dimension) by content hash."""
    rows = CachedEmbedding.objects.filter(provider=provider, model=model, content_hash__in=list(hashes))
    return {row.content_hash: _unpack(bytes(row.vectors)) for row in rows}


def store_documents(provider: str, model: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Store the vectors (parts, dimension) of texts by content hash, in place of earlier ones."""
    CachedEmbedding.objects.bulk_create(
        [
            CachedEmbedding(content_hash=digest, provider=provider, model=model, vectors=_pack(rows))
            for digest, rows in vectors.items()
        ],
        update_conflicts=True,
        unique_fields=["content_hash", "provider", "model"],
        update_fields=["vectors"],
    )


def delete_unreferenced(hashes: Iterable[str]) -> int:
    """Delete the cached vectors of texts that no unforgotten exchange has; return the number of rows."""
    with_text = Exchange.objects.filter(content_hash=OuterRef("content_hash"), forgotten_at=None)
    return CachedEmbedding.objects.filter(~Exists(with_text), content_hash__in=list(hashes)).delete()[0]


def embed_query(embedder: Embedder, text: str, *, keep: bool = True) -> NDArray[np.float32]:
    """Return the query's vector (dimension,), cached in memory only if `keep`."""
    key = (embedder.provider, embedder.model, text)
    with _lock:
        if key in _queries:
            _queries.move_to_end(key)
            return _queries[key]
    vector = embedder.embed_query(text)
    if keep:
        with _lock:
            _queries[key] = vector
            while len(_queries) > _MAX_QUERIES:
                _queries.popitem(last=False)
    return vector


def clear_query_cache() -> None:
    """Delete all cached queries."""
    with _lock:
        _queries.clear()


def _pack(rows: NDArray[np.float32]) -> bytes:
    return len(rows).to_bytes(2, "big") + np.ascontiguousarray(rows, dtype="<f4").tobytes()


def _unpack(data: bytes) -> NDArray[np.float32]:
    return np.frombuffer(data[2:], dtype="<f4").reshape(int.from_bytes(data[:2], "big"), -1)

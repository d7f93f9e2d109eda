"""Vectors in collections of the vector store, with their filter fields and without text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory.index import chroma
from memory.index.chroma import CollectionMissingError, Handle, map_chroma_errors
from memory.index.vectors import ScoredId
from memory.utils.batching import batched

R = TypeVar("R")

# Maximum ids per request.
_MAX_IDS = 1000
# Metadata key of a collection that is being filled: the time at which it was last marked as in use.
_TOUCHED = "touched"


@map_chroma_errors
def upsert(
    collection: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    fields: Sequence[dict[str, Any]],
) -> None:
    """Store `vectors` (n, dimension) under `ids` with their filter fields; create the collection if it is missing."""
    chroma.run(
        collection,
        lambda handle: handle.upsert(ids=list(ids), embeddings=vectors, metadatas=list(fields)),
        create=True,
    )


@map_chroma_errors
def query(
    collection: str, vector: NDArray[np.float32], count: int, where: dict[str, Any] | None = None
) -> list[ScoredId]:
    """Return the ids and similarities (1 - cosine distance) of the `count` nearest vectors, nearest first.

    `where` is a Chroma filter from `memory.filters`; None applies no filter. Raises CollectionMissingError.
    """
    found = chroma.run(
        collection,
        lambda handle: handle.query(
            query_embeddings=cast(Any, [vector]), n_results=count, where=where, include=["distances"]
        ),
    )
    distances = (found["distances"] or [[]])[0]
    return [(id, 1.0 - distance) for id, distance in zip(found["ids"][0], distances, strict=True)]


@map_chroma_errors
def similarities(vector: NDArray[np.float32], collection: str, ids: Sequence[str]) -> list[ScoredId]:
    """Return those of `ids` that exist with their cosine similarity to `vector`, unordered."""
    found = vectors(collection, ids)
    if not found:
        return []
    matrix = np.stack(list(found.values()))
    cosines = matrix @ vector / np.maximum(np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector), 1e-12)
    return list(zip(found, cosines.tolist(), strict=True))


@map_chroma_errors
def vectors(collection: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the existing vectors of `ids`, by id."""
    vectors_by_id: dict[str, NDArray[np.float32]] = {}
    for found in _call_in_batches(collection, ids, lambda batch, handle: handle.get(ids=batch, include=["embeddings"])):
        if found["ids"]:
            vectors_by_id |= zip(found["ids"], np.asarray(found["embeddings"], dtype=np.float32), strict=True)
    return vectors_by_id


@map_chroma_errors
def delete(collection: str, ids: Iterable[str]) -> None:
    """Delete the vectors with these ids; ignore missing ones."""
    _call_in_batches(collection, ids, lambda batch, handle: handle.delete(ids=batch))


@map_chroma_errors
def existing_ids(collection: str, ids: Iterable[str]) -> set[str]:
    """Return those of `ids` that the collection contains."""
    pages = _call_in_batches(collection, ids, lambda batch, handle: handle.get(ids=batch, include=[]))
    return {id for page in pages for id in page["ids"]}


@map_chroma_errors
def stored_spaces(collection: str, ids: Iterable[str]) -> dict[str, str]:
    """Return the space that is stored with each of `ids` that the collection contains, "" without one."""
    pages = _call_in_batches(collection, ids, lambda batch, handle: handle.get(ids=batch, include=["metadatas"]))
    return {
        id: str((fields or {}).get("space", ""))
        for page in pages
        for id, fields in zip(page["ids"], page["metadatas"] or [], strict=True)
    }


@map_chroma_errors
def count(collection: str) -> int:
    """Return the number of vectors in the collection, 0 if it is missing."""
    return _call(collection, lambda handle: handle.count(), missing=0)


@map_chroma_errors
def list_ids(collection: str, offset: int, limit: int) -> list[str]:
    """Return up to `limit` vector ids from `offset`, in insertion order; empty if the collection is missing."""
    return _call(collection, lambda handle: list(handle.get(limit=limit, offset=offset, include=[])["ids"]), missing=[])


@map_chroma_errors
def copy(source: str, target: str, ids: Sequence[str]) -> set[str]:
    """Copy these vectors with their filter fields to another collection; return the ids that the source had."""
    if not ids:
        return set()
    unique_ids = list(dict.fromkeys(ids))
    found = _call(source, lambda handle: handle.get(ids=unique_ids, include=["embeddings", "metadatas"]), missing=None)
    if found is None or not found["ids"]:
        return set()
    vectors = np.asarray(found["embeddings"], dtype=np.float32)
    upsert(target, found["ids"], vectors, cast(Any, found["metadatas"]))
    return set(found["ids"])


@map_chroma_errors
def recreate_collection(collection: str, *, unless_touched_within: float) -> bool:
    """Create an empty collection and replace any abandoned collection of the same name.

    Return False if the existing collection was marked as in use within the last `unless_touched_within` seconds.
    """
    metadata = chroma.read_metadata(collection)
    if metadata is not None:
        if _seconds_since_touched(metadata) < unless_touched_within:
            return False
        chroma.delete_collection(collection)
    chroma.create_collection(collection, {_TOUCHED: time.time()})
    return True


@map_chroma_errors
def mark_in_use(collection: str) -> None:
    """Store the current time on a collection that is being filled. Raises CollectionMissingError."""
    chroma.run(collection, lambda handle: handle.modify(metadata={_TOUCHED: time.time()}))


@map_chroma_errors
def collections(prefix: str, *, untouched_for: float) -> list[str]:
    """Return the collections with this name prefix that were not marked as in use for `untouched_for` seconds."""
    return [
        name
        for name, metadata in chroma.list_collections()
        if name.startswith(prefix) and _seconds_since_touched(metadata) >= untouched_for
    ]


def request_file_cleanup() -> Path | None:
    """Create the file that tells the supervisor to clean Chroma's directory, and return its path.

    Return None if Chroma's files are not on this machine. An external server keeps dropped files until it is cleaned.
    """
    directory: Path = settings.CATO.vector_store.path
    if not directory.is_dir():
        return None
    marker = directory.with_name(f"{directory.name}.clean")
    marker.touch(mode=0o600)
    return marker


@map_chroma_errors
def drop(collection: str) -> None:
    """Drop the collection; ignore a missing one."""
    chroma.delete_collection(collection)


def _call(name: str, operation: Callable[[Handle], R], *, missing: R) -> R:
    """Return the result of `operation` on the collection, or `missing` if the collection does not exist."""
    try:
        return chroma.run(name, operation)
    except CollectionMissingError:
        return missing


def _call_in_batches(name: str, ids: Iterable[str], operation: Callable[[list[str], Handle], R]) -> list[R]:
    """Return the results of `operation` on batches of the distinct ids; none if the collection does not exist."""
    results: list[R] = []
    # Chroma refuses a request with a duplicate id.
    for batch in batched(dict.fromkeys(ids), _MAX_IDS):
        with suppress(CollectionMissingError):
            results.append(chroma.run(name, partial(operation, batch)))
    return results


def _seconds_since_touched(metadata: dict[str, Any]) -> float:
    return time.time() - float(metadata.get(_TOUCHED, 0.0))

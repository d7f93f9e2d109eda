"""Candidates by meaning: the nearest vectors in the indexes of the spaces that may be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory import generations, jobs, store
from memory.models import Embedding, Index, Job
from memory.retrieval.results import Query

Vector = NDArray[np.float32]
# They only wait for the Chroma server, and never touch the database.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="nearest")
# An exchange has up to three vectors of ordinary length, which tend to be near together.
_VECTORS_AN_EXCHANGE = 2.5


def nearest(query: Query, count: int, where: dict[str, Any] | None = None) -> dict[str, float]:
    """About `count` exchanges, by their hexadecimal ids, with the similarity of their best vector.

    `where` filters in the index. Raises StoreDown, StoreDisabled. Where a collection is missing its exchanges are queued
    to be embedded again.
    """
    if query.vector is None:
        return {}
    indexes = list(Index.objects.filter(generation=generations.serving(), space_id__in=list(query.spaces)))
    vectors = int(_VECTORS_AN_EXCHANGE * count)
    best: dict[str, float] = {}
    missing: list[store.CollectionMissing] = []
    for index, found in zip(indexes, _ask_all(indexes, query.vector, vectors, where), strict=True):
        try:
            best |= _ask_again(index, query.vector, vectors, where) if found is None else found
        except store.CollectionMissing as error:
            # A collection that never held anything is not missed.
            if jobs.begin_again(Embedding.objects.filter(index=index, state=Job.State.DONE)):
                missing.append(error)
    if missing and not best:
        raise missing[0]
    # Of several spaces as many as of one: each further candidate costs reading and weighing it and its neighbours.
    nearest_first = sorted(best, key=lambda id: (-best[id], id))
    return {id: best[id] for id in nearest_first[:count]}


def _ask_all(
    indexes: Sequence[Index], vector: Vector, count: int, where: dict[str, Any] | None
) -> Iterator[dict[str, float] | None]:
    """What each collection finds, all asked at once; None where there is no such collection."""

    def ask(collection: str) -> dict[str, float] | None:
        try:
            return store.query(collection, vector, count, where)
        except store.CollectionMissing:
            return None

    collections = [index.collection for index in indexes]
    return map(ask, collections) if len(collections) == 1 else _threads.map(ask, collections)


def _ask_again(index: Index, vector: Vector, count: int, where: dict[str, Any] | None) -> dict[str, float]:
    """Ask under the name that the collection has now: it may have been made anew this very moment."""
    name = index.collection
    index.refresh_from_db(fields=["collection"])
    if index.collection == name:
        raise store.CollectionMissing(name)
    return store.query(index.collection, vector, count, where)

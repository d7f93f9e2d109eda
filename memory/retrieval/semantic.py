"""Candidates by meaning: the nearest vectors in the indexes of the spaces that may be read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory import generations, jobs, store
from memory.models import Embedding, Index, Job
from memory.retrieval.results import Query

# An exchange has up to three vectors of ordinary length, which tend to be near together.
_VECTORS_AN_EXCHANGE = 2.5


def nearest(query: Query, count: int, where: dict[str, Any] | None = None) -> dict[str, float]:
    """About `count` exchanges, by their hexadecimal ids, with the similarity of their best vector.

    `where` filters in the index. Raises StoreDown, StoreDisabled. Where a collection is missing its exchanges are queued
    to be embedded again.
    """
    if query.vector is None:
        return {}
    indexes = Index.objects.filter(generation=generations.serving(), space_id__in=list(query.spaces))
    best: dict[str, float] = {}
    missing: list[store.CollectionMissing] = []
    for index in indexes:
        try:
            best |= _ask(index, query.vector, int(_VECTORS_AN_EXCHANGE * count), where)
        except store.CollectionMissing as error:
            # A collection that never held anything is not missed.
            if jobs.begin_again(Embedding.objects.filter(index=index, state=Job.State.DONE)):
                missing.append(error)
    if missing and not best:
        raise missing[0]
    # Of several spaces as many as of one: each further candidate costs reading and weighing it and its neighbours.
    nearest_first = sorted(best, key=lambda id: (-best[id], id))
    return {id: best[id] for id in nearest_first[:count]}


def _ask(index: Index, vector: NDArray[np.float32], count: int, where: dict[str, Any] | None) -> dict[str, float]:
    try:
        return store.query(index.collection, vector, count, where)
    except store.CollectionMissing:
        name = index.collection
        index.refresh_from_db(fields=["collection"])
        if index.collection == name:
            raise
        # Its collection was made anew this very moment.
        return store.query(index.collection, vector, count, where)

"""Candidates by meaning: the nearest vectors in the indexes of the spaces that may be read."""

from __future__ import annotations

import uuid

from memory import generations, jobs, store
from memory.models import Embedding, Exchange, Index, Job
from memory.retrieval.results import Query, Remembered

# Each stage takes at least this many times as many candidates as results are wanted.
WIDTH = 4


def nearest(query: Query) -> list[tuple[Remembered, float]]:
    """Exchanges with their similarity, nearest first: the index proposes, SQL decides on every one.

    Raises StoreDown, StoreDisabled. Where a collection is missing its exchanges are queued to be embedded again.
    """
    indexes = Index.objects.filter(generation=generations.serving(), space_id__in=list(query.spaces))
    count = WIDTH * query.wanted + len(query.exclude)
    best: dict[uuid.UUID, float] = {}
    missing: list[store.CollectionMissing] = []
    for index in indexes:
        try:
            matches = store.query(index.collection, query.vector, count)
        except store.CollectionMissing as error:
            # A collection that never held anything is not missed.
            if jobs.begin_again(Embedding.objects.filter(index=index, state=Job.State.DONE)):
                missing.append(error)
            continue
        best |= {match.exchange_id: match.similarity for match in matches}
    if missing and not best:
        raise missing[0]
    # By id alone: given the spaces too, SQLite walks through all of a space instead of looking up these few.
    rows = Exchange.objects.filter(id__in=set(best) - query.exclude).select_related("owner")
    found = [(Remembered.from_row(row), best[row.id]) for row in rows if _may_be_read(row, query)]
    return sorted(found, key=lambda pair: (-pair[1], str(pair[0].id)))


def _may_be_read(row: Exchange, query: Query) -> bool:
    return row.space_id in query.spaces and row.forgotten_at is None

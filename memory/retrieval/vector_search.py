"""Candidates by meaning: the nearest vectors in the indexes of the spaces that may be read."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from memory import jobs
from memory.index import store
from memory.index.vectors import ScoredId, Similarities, best_by_exchange, vector_ids
from memory.models import Embedding, Index, Job
from memory.retrieval.types import Query

R = TypeVar("R")
SimilarityById = dict[str, Similarities]  # exchanges, by their hexadecimal ids

# They only wait, for the vector of the question and for the Chroma server, and never touch the database.
_threads = ThreadPoolExecutor(max_workers=32, thread_name_prefix="nearest")
# An exchange has up to three vectors of ordinary length, which tend to be near together.
_VECTORS_AN_EXCHANGE = 2.5


@dataclass(frozen=True, slots=True)
class PendingVectorSearch:
    """What the collections say to a question as soon as it is embedded; the caller may do something else meanwhile.

    `coming` are the keys of their indexes, their names, and what each answers.
    """

    count: int
    ask: Callable[[str], list[ScoredId]]
    coming: list[tuple[int, str, Future[list[ScoredId]]]]

    def found(self) -> SimilarityById:
        """What `nearest` gives and raises."""
        pairs: list[ScoredId] = []
        missing: list[store.CollectionMissingError] = []
        for index, collection, answer in self.coming:
            try:
                pairs += self._of(index, collection, answer)
            except store.CollectionMissingError as error:
                # A collection that never held anything is not missed.
                if jobs.requeue(Embedding.objects.filter(index=index, state=Job.State.DONE)):
                    missing.append(error)
        if missing and not pairs:
            raise missing[0]
        # Of several spaces as many as of one: each further candidate costs reading and weighing it and its neighbours.
        return _exchanges(_nearest_first(pairs)[: _vectors(self.count)], self.count)

    def _of(self, index: int, collection: str, answer: Future[list[ScoredId]]) -> list[ScoredId]:
        try:
            return answer.result()
        except store.CollectionMissingError:
            # Ask under the name that the collection has now: it may have been made anew this very moment.
            name: str = Index.objects.values_list("collection", flat=True).get(pk=index)
            if name == collection:
                raise
            return self.ask(name)


def search_async(query: Query, count: int, where: dict[str, Any] | None = None) -> PendingVectorSearch:
    """Put the question to all collections at once; what they find is waited for by `found`."""

    def ask(collection: str) -> list[ScoredId]:
        vector = query.vector
        return [] if vector is None else store.query(collection, vector, _vectors(count), where)

    indexes = Index.objects.filter(generation=query.generation, space_id__in=list(query.spaces))
    names = indexes.values_list("pk", "collection")
    return PendingVectorSearch(count, ask, [(index, name, _threads.submit(ask, name)) for index, name in names])


def nearest(query: Query, count: int, where: dict[str, Any] | None = None) -> SimilarityById:
    """About `count` exchanges, nearest first; none without a vector. `where` filters in the index.

    Raises VectorStoreUnavailableError, VectorStoreDisabledError. Where a collection is missing its exchanges are queued to be embedded again.
    """
    return search_async(query, count, where).found()


def exact_similarities(query: Query, ids: Iterable[str], count: int) -> SimilarityById:
    """As `nearest`, exactly, of the exchanges with these hexadecimal ids: by every vector they have, found by its id."""
    if query.vector is None:
        return {}
    held: dict[str, list[str]] = defaultdict(list)
    embeddings = Embedding.objects.filter(
        exchange_id__in=[uuid.UUID(id) for id in ids],
        generation=query.generation,
        index__space_id__in=list(query.spaces),
    )
    rows = embeddings.values_list("index__collection", "exchange_id", "version", "parts")
    for collection, exchange_id, version, parts in rows:
        held[collection] += vector_ids(exchange_id, version, parts)
    weigh = partial(store.similarities, query.vector)
    pairs = [pair for found in in_parallel(weigh, held.keys(), held.values()) for pair in found]
    return _exchanges(_nearest_first(pairs), count)


def in_parallel(
    ask: Callable[[str, list[str]], R], collections: Iterable[str], ids: Iterable[list[str]]
) -> Iterator[R]:
    """Return what `ask` says about the vectors with these ids in each collection, all asked at once, in their order."""
    return _threads.map(ask, collections, ids)


def _vectors(count: int) -> int:
    return int(_VECTORS_AN_EXCHANGE * count)


def _nearest_first(pairs: list[ScoredId]) -> list[ScoredId]:
    return sorted(pairs, key=itemgetter(1), reverse=True)


def _exchanges(nearest_first: list[ScoredId], most: int) -> SimilarityById:
    best = best_by_exchange(nearest_first)
    return {id: best[id] for id in sorted(best, key=lambda id: (-best[id].best, id))[:most]}

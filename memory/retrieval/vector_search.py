"""Vector search: find the nearest vectors in the collections of the readable spaces.

A shared collection is queried for the readable spaces only: an unreadable vector is never a candidate.
"""

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
from memory.index.chroma import CollectionMissingError
from memory.index.vectors import ScoredId, Similarities, best_by_exchange, vector_ids
from memory.models import Collection, EmbeddingJob, Job, Placement
from memory.retrieval.types import Query

R = TypeVar("R")
SimilarityById = dict[str, Similarities]  # exchanges, by their hexadecimal ids

# These threads only wait for the query vector and the Chroma server. They never use the database.
_threads = ThreadPoolExecutor(max_workers=32, thread_name_prefix="nearest")
# Number of vectors to request per exchange. One of ordinary length has up to three, which tend to be similar.
_VECTORS_PER_EXCHANGE = 2.5


Search = Callable[[str], list[ScoredId]]  # searches one collection by name


@dataclass(frozen=True, slots=True)
class CollectionSearch:
    """A running query to one collection."""

    key: int
    name: str
    search: Search
    answer: Future[list[ScoredId]]

    def wait(self) -> list[ScoredId]:
        """Return the vectors that were found. Raises the errors of `store.query`."""
        try:
            return self.answer.result()
        except CollectionMissingError:
            # A rebuild may have replaced the collection. Retry with its current name.
            current = Collection.objects.values_list("name", flat=True).get(pk=self.key)
            if current == self.name:
                raise
            return self.search(current)


@dataclass(frozen=True, slots=True)
class PendingVectorSearch:
    """A running query to several collections, one thread per collection, which starts once the query is embedded."""

    count: int
    searches: list[CollectionSearch]

    def wait(self) -> SimilarityById:
        """Wait for all collections and return the same result, with the same errors, as `nearest`."""
        pairs: list[ScoredId] = []
        missing: list[CollectionMissingError] = []
        stored = EmbeddingJob.objects.filter(state=Job.State.DONE, parts__gt=0)
        for running in self.searches:
            try:
                pairs += running.wait()
            except CollectionMissingError as error:
                # A missing collection is an error only if it contained vectors.
                if jobs.requeue(stored.filter(collection=running.key)):
                    missing.append(error)
        if missing and not pairs:
            raise missing[0]
        # Return the same number of hits for several spaces as for one. Each candidate adds the cost of reading and
        # scoring it and its neighbours.
        return _similarities(_sort_by_similarity(pairs)[: _vector_count(self.count)], self.count)


def search_async(query: Query, count: int, where: dict[str, Any] | None = None) -> PendingVectorSearch:
    """Query all collections concurrently and return at once; `wait` returns the results."""
    placements = Placement.objects.filter(generation=query.generation, space__in=list(query.spaces)).order_by("pk")
    spaces: dict[tuple[int, str, bool], list[str]] = defaultdict(list)
    for key, name, is_shared, space_id in placements.values_list(
        "collection", "collection__name", "collection__is_shared", "space"
    ):
        spaces[key, name, is_shared].append(str(space_id))
    searches = []
    for (key, name, is_shared), space_ids in spaces.items():
        search = partial(_search, query, count, _in_spaces(space_ids, where) if is_shared else where)
        searches.append(CollectionSearch(key, name, search, _threads.submit(search, name)))
    return PendingVectorSearch(count, searches)


def _search(query: Query, count: int, where: dict[str, Any] | None, collection: str) -> list[ScoredId]:
    vector = query.vector
    return [] if vector is None else store.query(collection, vector, _vector_count(count), where)


def _in_spaces(space_ids: list[str], where: dict[str, Any] | None) -> dict[str, Any]:
    """Return a filter for the vectors of these spaces that match `where`."""
    own: dict[str, Any] = {"space": {"$in": space_ids}}
    return {"$and": [own, where]} if where else own


def nearest(query: Query, count: int, where: dict[str, Any] | None = None) -> SimilarityById:
    """Return about `count` exchanges, nearest first, or none if the query has no vector. `where` filters in Chroma.

    The exchanges of a missing collection are queued for embedding. Raises VectorStoreUnavailableError and
    VectorStoreDisabledError.
    """
    return search_async(query, count, where).wait()


def exact_similarities(query: Query, ids: Iterable[str], count: int) -> SimilarityById:
    """Return the nearest `count` of the exchanges with these hexadecimal ids, comparing all their vectors exactly.

    The vectors are fetched by id. The errors are those of `nearest`.
    """
    if query.vector is None:
        return {}
    ids_by_collection: dict[str, list[str]] = defaultdict(list)
    embeddings = EmbeddingJob.objects.filter(
        exchange_id__in=[uuid.UUID(id) for id in ids],
        generation=query.generation,
        exchange__space__in=list(query.spaces),
    )
    rows = embeddings.values_list("collection__name", "exchange_id", "version", "parts")
    for collection, exchange_id, version, parts in rows:
        ids_by_collection[collection] += vector_ids(exchange_id, version, parts)
    compare = partial(store.similarities, query.vector)
    answers = in_parallel(compare, ids_by_collection.keys(), ids_by_collection.values())
    pairs = [pair for answer in answers for pair in answer]
    return _similarities(_sort_by_similarity(pairs), count)


def in_parallel(
    call: Callable[[str, list[str]], R], collections: Iterable[str], ids: Iterable[list[str]]
) -> Iterator[R]:
    """Call the function with each collection and its vector ids concurrently; yield the results in their order."""
    return _threads.map(call, collections, ids)


def _vector_count(count: int) -> int:
    return int(_VECTORS_PER_EXCHANGE * count)


def _sort_by_similarity(pairs: list[ScoredId]) -> list[ScoredId]:
    return sorted(pairs, key=itemgetter(1), reverse=True)


def _similarities(nearest_first: list[ScoredId], limit: int) -> SimilarityById:
    best = best_by_exchange(nearest_first)
    return {id: best[id] for id in sorted(best, key=lambda id: (-best[id].best, id))[:limit]}

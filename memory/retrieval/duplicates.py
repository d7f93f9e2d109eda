"""Near-duplicates: exchanges whose messages and whose whole texts have nearly the same vectors."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from memory.errors import VectorStoreUnavailableError
from memory.index import store
from memory.index.vectors import parse_exchange_id, vector_ids
from memory.models import EmbeddingJob, Job
from memory.retrieval.candidates import Candidate
from memory.retrieval.diversity import overlap
from memory.retrieval.levels import shipped_level
from memory.retrieval.types import Query
from memory.retrieval.vector_search import in_parallel

log = logging.getLogger(__name__)

# Texts with a smaller term overlap never reach the cosine of duplicates, so their vectors are not fetched.
_MIN_OVERLAP = 0.4

TextVectors = dict[
    str, NDArray[np.float32]
]  # per exchange: the vectors of its whole text and of its message, (2, dimension)


def without_near_duplicates(ranked: Sequence[Candidate], query: Query) -> list[Candidate]:
    """Drop each candidate whose message and whole text are both duplicates of a better one's, by the model's level.

    Only vectors of candidates with enough term overlap are fetched. If the index is unavailable, all candidates
    remain.
    """
    pairs = [
        pair for pair in combinations(ranked, 2) if overlap(pair[0].text_terms, pair[1].text_terms) >= _MIN_OVERLAP
    ]
    if not pairs:
        return list(ranked)
    try:
        vectors = _load_vectors({candidate.id for pair in pairs for candidate in pair}, query)
    except VectorStoreUnavailableError as error:
        log.warning("near-duplicates could not be compared: %s", error)
        return list(ranked)
    duplicate = shipped_level(query.generation.model).duplicate
    kept: list[Candidate] = []
    for candidate in ranked:
        own_vectors = vectors.get(candidate.id)
        kept_vectors = [vectors[other.id] for other in kept if other.id in vectors]
        if own_vectors is None or not any((_cosines(own_vectors, other) >= duplicate).all() for other in kept_vectors):
            kept.append(candidate)
    return kept


def _load_vectors(ids: Iterable[str], query: Query) -> TextVectors:
    rows = EmbeddingJob.objects.filter(
        exchange_id__in=[uuid.UUID(id) for id in ids],
        generation=query.generation,
        state=Job.State.DONE,
        exchange__space__in=list(query.spaces),
    )
    ids_by_collection: dict[str, list[str]] = defaultdict(list)
    for collection, exchange_id, version, parts in rows.values_list(
        "collection__name", "exchange_id", "version", "parts"
    ):
        # The vector of the whole text, then that of the start of the message. A note has only the first.
        ids_by_collection[collection] += vector_ids(exchange_id, version, min(parts, 2))
    vectors_by_exchange: dict[str, list[NDArray[np.float32]]] = defaultdict(list)
    for found in in_parallel(store.vectors, ids_by_collection.keys(), ids_by_collection.values()):
        for vector_id in sorted(found, reverse=True):  # "whole" before "part1"
            vectors_by_exchange[parse_exchange_id(vector_id)].append(found[vector_id])
    return {id: np.stack([vectors[0], vectors[-1]]) for id, vectors in vectors_by_exchange.items()}


def _cosines(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each row of `one` with the same row of `other`."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosines: NDArray[np.float32] = (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)
    return cosines

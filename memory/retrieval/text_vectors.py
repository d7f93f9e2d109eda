"""Vectors of candidates' texts, to compare candidates with each other."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from memory.embeddings.base import Vectors, normalise
from memory.errors import VectorStoreUnavailableError
from memory.index import store
from memory.index.vectors import parse_exchange_id, vector_ids
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.vector_search import in_parallel

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The normalised vectors (dimension,) of an exchange's whole text and of the beginning of its message.

    They are the same if the exchange has only one vector, as a note has.
    """

    whole: Vectors
    message: Vectors


def load_text_vectors(candidates: Sequence[Candidate], pool: CandidatePool) -> dict[str, TextVectors]:
    """Return the vectors of these candidates by exchange id (hexadecimal), without asking the database.

    Candidates that are not indexed, or whose collection was not searched, are missing. If the vector store does not
    answer, all are.
    """
    ids_by_collection: dict[str, list[str]] = defaultdict(list)
    for candidate in candidates:
        collection = pool.collections.get(candidate.collection_id)
        if collection is not None and candidate.vectors:
            ids = vector_ids(uuid.UUID(candidate.id), candidate.version, min(candidate.vectors, 2))
            ids_by_collection[collection] += ids
    vectors: dict[str, list[Vectors]] = defaultdict(list)
    try:
        for found in in_parallel(store.vectors, ids_by_collection.keys(), ids_by_collection.values()):
            for vector_id in sorted(found, reverse=True):  # "whole" before "part1"
                vectors[parse_exchange_id(vector_id)].append(normalise(found[vector_id]))
    except VectorStoreUnavailableError as error:
        log.warning("the results could not be compared with each other: %s", error)
        return {}
    return {id: TextVectors(rows[0], rows[-1]) for id, rows in vectors.items()}

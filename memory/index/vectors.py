"""The ids under which vectors stand in a collection: `{exchange}:{part}:{version}`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

ScoredId = tuple[str, float]  # the id of a vector and how similar it is

MOST_OF_MESSAGE, MOST_OF_ANSWER = 3, 5
_ID_LENGTH = 36
PARTS = ("whole", *(f"part{number}" for number in range(1, MOST_OF_MESSAGE + MOST_OF_ANSWER + 1)))


def vector_ids(exchange_id: uuid.UUID, version: int, count: int) -> list[str]:
    """The ids of a version's `count` vectors."""
    return [f"{exchange_id}:{part}:{version}" for part in PARTS[:count]]


def all_vector_ids(exchange_id: uuid.UUID, version: int) -> list[str]:
    """The ids of every vector that any version up to this one may have left."""
    return [id for v in range(1, version + 1) for id in vector_ids(exchange_id, v, len(PARTS))]


def parse_exchange_id(vector_id: str) -> str:
    """The exchange whose vector this is, in hexadecimal."""
    return vector_id[:_ID_LENGTH].replace("-", "")


class Similarities(NamedTuple):
    """How similar an exchange is: its best vector, and the next best that was found (the same where none was)."""

    best: float
    second: float


def best_by_exchange(nearest_first: Iterable[ScoredId]) -> dict[str, Similarities]:
    """What vectors say of each exchange (its id in hexadecimal), in their order."""
    best: dict[str, float] = {}
    second: dict[str, float] = {}
    for vector_id, similarity in nearest_first:
        exchange = vector_id[:_ID_LENGTH]
        if exchange in best:
            second.setdefault(exchange, similarity)
        else:
            best[exchange] = similarity
    return {parse_exchange_id(id): Similarities(nearest, second.get(id, nearest)) for id, nearest in best.items()}

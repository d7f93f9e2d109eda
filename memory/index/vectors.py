"""Vector ids in a collection: `{exchange}:{part}:{version}`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ScoredId = tuple[str, float]  # vector id and similarity

MAX_MESSAGE_PARTS, MAX_ANSWER_PARTS = 3, 4
_ID_LENGTH = 36
_MESSAGE_PART = ":part1:"
# Length by which stored vectors of length 1 are moved; it changes a similarity by less than .001.
_OFFSET = 0.005
PARTS = ("whole", *(f"part{number}" for number in range(1, MAX_MESSAGE_PARTS + MAX_ANSWER_PARTS + 1)))


def vector_ids(exchange_id: uuid.UUID, version: int, count: int) -> list[str]:
    """Return the ids of the first `count` vectors of a version."""
    return [f"{exchange_id}:{part}:{version}" for part in PARTS[:count]]


def all_vector_ids(exchange_id: uuid.UUID, version: int) -> list[str]:
    """Return the ids of all possible vectors of versions 1 to `version`."""
    return [id for v in range(1, version + 1) for id in vector_ids(exchange_id, v, len(PARTS))]


def set_apart(ids: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors (ids, dimension), each moved slightly in a direction that depends on its id.

    The index links each vector with its nearest ones. Hundreds of identical ones, as those of a greeting, are linked with
    each other only, and a query that arrives there finds nothing else: a third of a collection in the test.
    """
    directions = np.stack([np.random.default_rng(list(id.encode())).normal(size=vectors.shape[1]) for id in ids])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    moved: NDArray[np.float32] = (vectors + _OFFSET * directions / lengths).astype(np.float32)
    return moved


def parse_exchange_id(vector_id: str) -> str:
    """Return the exchange id of a vector, in hexadecimal without hyphens."""
    return vector_id[:_ID_LENGTH].replace("-", "")


class Similarities(NamedTuple):
    """Similarities of an exchange's best and second-best vector, and of the beginning of its message.

    `second` equals `best` if only one vector was found. `message` is -1 if that vector was not found.
    """

    best: float
    second: float
    message: float = -1.0


def best_by_exchange(nearest_first: Iterable[ScoredId]) -> dict[str, Similarities]:
    """Return the similarities by exchange id (hexadecimal), in the order of the best vectors."""
    found: dict[str, list[float]] = {}
    messages: dict[str, float] = {}
    for vector_id, similarity in nearest_first:
        exchange = vector_id[:_ID_LENGTH]
        found.setdefault(exchange, []).append(similarity)
        if vector_id.startswith(_MESSAGE_PART, _ID_LENGTH):
            messages[exchange] = similarity
    return {
        parse_exchange_id(id): Similarities(values[0], values[:2][-1], messages.get(id, -1.0))
        for id, values in found.items()
    }

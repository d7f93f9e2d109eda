"""The vector of a question, made while its words are looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memory.embeddings import cache
from memory.embeddings.base import Embedder
from memory.errors import EmbeddingError

log = logging.getLogger(__name__)

# They compute or wait for an endpoint, and never touch the database.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="question")
# What is embedded of a long message: models read its beginning only, and what is asked often stands at its end.
_HEAD, _TAIL = 600, 400


def embed_async(
    messages: Sequence[str], embedder: Embedder, *, keep: bool = True
) -> Callable[[], NDArray[np.float32] | None]:
    """Begin to embed the messages and go on; what is returned waits for their one vector (dimension,).

    It gives None where the model cannot be asked. `keep`: the vector may be remembered in this process.
    """
    return _threads.submit(_embedded, messages, partial(cache.embed_query, embedder, keep=keep)).result


def _embedded(messages: Sequence[str], embed: Callable[[str], NDArray[np.float32]]) -> NDArray[np.float32] | None:
    try:
        vectors = [embed(_readable(message)) for message in messages]
    except EmbeddingError as error:
        log.warning("a question could not be embedded, words alone find: %s", error)
        return None
    mixed = np.sum(vectors, axis=0)
    return np.asarray(mixed / max(float(np.linalg.norm(mixed)), 1e-12), dtype=np.float32)


def _readable(message: str) -> str:
    return message if len(message) <= _HEAD + _TAIL else f"{message[:_HEAD]}\n{message[-_TAIL:]}"

"""Embed a query in a thread while its terms are looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memory.embeddings import cache
from memory.embeddings.base import Embedder, Vectors, normalise
from memory.errors import EmbeddingError

log = logging.getLogger(__name__)

# These threads compute or wait for an endpoint. They never use the database.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="question")
# Characters embedded from the beginning and the end of a long message. Models read only the beginning of a text, and
# the question is often at the end.
_HEAD, _TAIL = 600, 400


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The vectors (dimension,) of a query: of all its messages together, and of the newest one alone."""

    combined: NDArray[np.float32]
    newest: NDArray[np.float32]


def embed_async(messages: Sequence[str], embedder: Embedder, *, keep: bool = True) -> Callable[[], QueryVectors | None]:
    """Start to embed the messages and return a function that waits for their vectors.

    The combined vector is the normalised sum of the messages' vectors. The function returns None if embedding fails.
    `keep` allows caching in this process.
    """
    return _threads.submit(_embed_messages, messages, partial(cache.embed_query, embedder, keep=keep)).result


def embed_each_async(texts: Sequence[str], embedder: Embedder) -> Callable[[], Vectors | None]:
    """Start to embed short texts as documents, in one batch and uncached.

    The returned function waits for the vectors (texts, dimension); it returns None if embedding fails.
    """
    return _threads.submit(_embed_each, texts, embedder).result


def _embed_each(texts: Sequence[str], embedder: Embedder) -> Vectors | None:
    try:
        return embedder.embed_documents(texts)
    except EmbeddingError as error:
        log.warning("the sentences of a message could not be embedded: %s", error)
        return None


def _embed_messages(messages: Sequence[str], embed: Callable[[str], NDArray[np.float32]]) -> QueryVectors | None:
    try:
        vectors = [embed(_shorten(message)) for message in messages]
    except EmbeddingError as error:
        log.warning("a query could not be embedded, the search is lexical only: %s", error)
        return None
    return QueryVectors(normalise(np.sum(vectors, axis=0)), vectors[-1])


def _shorten(message: str) -> str:
    return message if len(message) <= _HEAD + _TAIL else f"{message[:_HEAD]}\n{message[-_TAIL:]}"

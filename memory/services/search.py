"""Recalling for a conversation, and finding for a person who searches."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory import generations
from memory.embeddings import cache
from memory.errors import BadQuery, EmbeddingFailed, StoreDisabled, StoreDown
from memory.retrieval import context, strategy
from memory.retrieval.results import Query, Result
from memory.spaces import SpaceIds
from memory.text import clean_text

log = logging.getLogger(__name__)

MOST_RESULTS = 100
# How much each of the last messages weighs in the query, newest first. Measured: the right exchange among the first
# five for 72 of 100 follow-ups and 95 of 100 changes of subject (the new message alone: 38 and 97).
_WEIGHTS = (0.7, 0.2, 0.1)
_QUERY_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Recollection:
    """What came back for a turn, best first, and why there is less than there could be: "", down, or failed."""

    results: tuple[Result, ...] = ()
    note: str = ""


def recall(
    messages: Sequence[str],
    *,
    spaces: SpaceIds,
    exclude: frozenset[uuid.UUID] = frozenset(),
    conversation_length: int = 0,
    keep_query: bool = True,
) -> Recollection:
    """What memory has for a conversation whose last messages, newest last, are `messages`.

    Only what passes the gate, at most `context_results`, within `context_max_tokens`. A store or an embedding model
    that does not answer is no error here: the recollection is empty and its note says so.
    """
    conf = settings.CATO.vector_store
    if not conf.enabled or not spaces or not any(message.strip() for message in messages):
        return Recollection()
    try:
        query = Query(
            text=messages[-1],
            vector=_conversation_vector(messages[-conf.search_context_window :], keep=keep_query),
            spaces=spaces,
            wanted=3 * conf.context_results,
            exclude=exclude,
            conversation_length=conversation_length,
        )
        ranked = strategy(conf.retrieval_strategy)(query)
    except StoreDown as error:
        log.warning("nothing could be recalled: %s", error)
        return Recollection(note="down")
    except EmbeddingFailed as error:
        log.warning("nothing could be recalled: %s", error)
        return Recollection(note="failed")
    kept = context.within_budget(ranked, limit=conf.context_results, max_tokens=conf.context_max_tokens)
    return Recollection(results=tuple(kept))


def find(text: str, *, spaces: SpaceIds, count: int = 20, min_similarity: float | None = None) -> list[Result]:
    """The `count` exchanges nearest to `text` in `spaces`, not gated: those below the gate are marked.

    Raises BadQuery, StoreDown, StoreDisabled, EmbeddingFailed.
    """
    text = clean_text(text).strip()
    if not text:
        raise BadQuery("Type what you are looking for.")
    if not 1 <= count <= MOST_RESULTS:
        raise BadQuery(f"Ask for 1 to {MOST_RESULTS} results, not {count}.")
    if not settings.CATO.vector_store.enabled:
        raise StoreDisabled("Nothing can be found: the vector store is disabled (vector_store.enabled).")
    if not spaces:
        return []
    embedder = generations.embedder_of(generations.serving())
    vector = cache.embed_query(embedder, text[:_QUERY_CHARS])
    query = Query(text=text, vector=vector, spaces=spaces, wanted=count)
    ranked = strategy(settings.CATO.vector_store.retrieval_strategy)(query)
    if min_similarity is not None:
        ranked = [r for r in ranked if r.similarity is not None and r.similarity >= min_similarity]
    return ranked[:count]


def _conversation_vector(messages: Sequence[str], *, keep: bool) -> NDArray[np.float32]:
    embedder = generations.embedder_of(generations.serving())
    newest_first = [message[:_QUERY_CHARS] for message in reversed(messages) if message.strip()]
    mixed = sum(
        weight * cache.embed_query(embedder, message, keep=keep)
        for weight, message in zip(_WEIGHTS, newest_first, strict=False)
    )
    return np.asarray(mixed / np.linalg.norm(mixed), dtype=np.float32)

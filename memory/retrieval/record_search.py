"""Search records: by a vector of the program that stored them, or by a text."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from memory.errors import InvalidInputError
from memory.exchanges.metadata import Checked
from memory.exchanges.records import IS_RECORD, Vector, records_in, validate_vector
from memory.filters import Filter, all_of, parse_filter, to_sql
from memory.index import generations
from memory.index.embedding_policy import may_receive_query
from memory.models import Exchange, IndexGeneration
from memory.retrieval import get_strategy, query_embedding
from memory.retrieval.exchange_views import still_readable_ids
from memory.retrieval.search import MAX_RESULTS, ensure_enabled
from memory.retrieval.types import Query, RankedHits
from memory.spaces.access import SpaceIds
from memory.text import clean_text


@dataclass(frozen=True, slots=True)
class RecordHit:
    """A found record. `similarity` is in [-1, 1], or None if it was not found by its vector."""

    id: str
    exchange_id: uuid.UUID
    text: str
    metadata: Checked
    similarity: float | None
    score: float


def query_records(
    *,
    spaces: SpaceIds,
    text: str | None = None,
    vector: Vector | None = None,
    top_k: int = 8,
    filters: Mapping[str, object] | None = None,
    prefer: Mapping[str, object] | None = None,
    reader_id: uuid.UUID | None = None,
) -> list[RecordHit]:
    """Return the best `top_k` records of `spaces`, not gated.

    They are ranked by cosine similarity to `vector`, or by vector and lexical search for `text`. All hits match
    `filters`; those that also match `prefer` come first. If the vector store fails, the search is lexical. If that
    finds nothing, the records that match the filters are returned, newest first. `reader_id` is that of `search`.
    Raises InvalidInputError and VectorStoreDisabledError.
    """
    ensure_enabled()
    if not 1 <= top_k <= MAX_RESULTS:
        raise InvalidInputError(f"Ask for 1 to {MAX_RESULTS} records (top_k), not {top_k}.")
    query_text = clean_text(text or "").strip()
    if not query_text and vector is None:
        raise InvalidInputError("Query with a text or a vector.")
    required = parse_filter(filters) if filters else None
    active = generations.active_generation()
    query = Query(
        text=query_text,
        get_vector=_query_vector(query_text, vector, active, spaces),
        generation=active,
        spaces=spaces,
        limit=top_k,
        now=timezone.now(),
    )
    if not spaces:
        return []
    if prefer:
        hits = _query_once(query, all_of(required, parse_filter(prefer)))
        hits = (hits + _query_once(query, all_of(required, parse_filter({"$not": prefer}))))[:top_k]
    else:
        hits = _query_once(query, required)
    if reader_id is None:
        return hits
    readable = still_readable_ids([hit.exchange_id for hit in hits], spaces=spaces, reader_id=reader_id)
    return [hit for hit in hits if hit.exchange_id in readable]


def _query_vector(
    text: str, vector: Vector | None, active: IndexGeneration, spaces: SpaceIds
) -> Callable[[], NDArray[np.float32] | None]:
    if vector is None:
        if not may_receive_query(active.provider, spaces):
            return lambda: None
        get_vectors = query_embedding.embed_async([text], generations.embedder_for(active))
        return lambda: vectors.combined if (vectors := get_vectors()) else None
    normalised_vector = validate_vector(vector)
    return lambda: normalised_vector


def _query_once(query: Query, filters: Filter | None) -> list[RecordHit]:
    """Return the best records that match `filters`; without a text, rank them by cosine similarity only."""
    ranking = get_strategy("hybrid" if query.text else "default")(_only_records(query, filters))
    hits = _hits(ranking)
    if hits or not ranking.is_lexical_only or filters is None:
        return hits[: query.limit]
    rows = records_in(query.spaces).filter(to_sql(filters)).order_by("-timestamp", "id")[: query.limit]
    return [_hit(row, None, 0.0) for row in rows]


def _only_records(query: Query, filters: Filter | None) -> Query:
    # Programs also store exchanges and notes, which have `manual_entry` set.
    records = parse_filter({"source": str(Exchange.Source.API), "manual_entry": False})
    return replace(query, keep_duplicates=True, filters=all_of(records, filters))


def _hits(ranking: RankedHits) -> list[RecordHit]:
    """Return the hits that are records; other exchanges can have the same source."""
    ids = [result.exchange.id for result in ranking.results]
    rows = {row.pk: row for row in Exchange.objects.filter(IS_RECORD, pk__in=ids).select_related("record")}
    return [_hit(rows[r.exchange.id], r.similarity, r.score) for r in ranking.results if r.exchange.id in rows]


def _hit(row: Any, similarity: float | None, score: float) -> RecordHit:
    return RecordHit(row.record.name, row.pk, row.user_message, row.metadata, similarity, score)

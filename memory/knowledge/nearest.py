"""The statements of a space that are most similar to exchanges."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from memory.index import generations, store
from memory.index.vectors import best_by_exchange
from memory.knowledge.unread import message_vectors
from memory.models import Exchange, Placement, Statement
from memory.retrieval.levels import level_of

# Vectors that are read for each exchange. Statements are among those of all exchanges of the space.
_VECTORS = 100
_MOST = 8


def related_statements(space_id: uuid.UUID, exchanges: Sequence[Exchange]) -> list[Statement]:
    """Return at most eight statements of the space on the subject of these exchanges, the most similar first.

    Rejected ones are included, since they must not be extracted again, and superseded ones are not. Raises
    VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    generation = generations.active_generation()
    level = level_of(generation.provider, generation.model)
    placements = Placement.objects.filter(space_id=space_id, generation=generation).select_related("collection")
    similarities: dict[uuid.UUID, float] = {}
    for vector in message_vectors([exchange.pk for exchange in exchanges], generation).values():
        for placement in placements:
            where = {"space": str(space_id)} if placement.collection.is_shared else None
            found = best_by_exchange(store.query(placement.collection.name, vector, _VECTORS, where))
            for id, similarity in found.items():
                key = uuid.UUID(id)
                similarities[key] = max(similarity.best, similarities.get(key, -1.0))
    near = [id for id, similarity in similarities.items() if similarity >= level.same_subject]
    rows = Statement.objects.filter(pk__in=near, exchange__space_id=space_id, exchange__forgotten_at=None)
    statements = rows.exclude(state=Statement.State.SUPERSEDED).select_related("exchange__space")
    return sorted(statements, key=lambda row: (-similarities[row.pk], str(row.pk)))[:_MOST]

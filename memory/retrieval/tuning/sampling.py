"""Random samples of exchanges, bounded in size."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from memory.index import generations
from memory.index.embedding_policy import embeddable_spaces
from memory.models import Exchange, Job
from memory.spaces.access import SpaceIds, in_spaces

MAX_SAMPLE = 1000


def sample_exchanges(count: int, spaces: SpaceIds | None) -> list[Exchange]:
    """Return at most `count` (and MAX_SAMPLE) indexed exchanges of `spaces`, or of all spaces for None.

    Those that the embedding model may not receive are left out, since questions are made of their text. Ids are random,
    so the rows from a random id on are a random sample, and no other rows are read.
    """
    active = generations.active_generation()
    rows: QuerySet[Exchange] = Exchange.objects.findable().select_related("space")
    rows = rows.filter(embeddings__generation=active, embeddings__state=Job.State.DONE)
    rows = rows if spaces is None else in_spaces(rows, spaces)
    start, count = uuid.uuid4(), min(count, MAX_SAMPLE)
    found = list(rows.filter(id__gte=start).order_by("id")[:count])
    found += rows.filter(id__lt=start).order_by("id")[: count - len(found)]
    permitted = embeddable_spaces(active.provider, {exchange.space for exchange in found})
    return [exchange for exchange in found if exchange.space_id in permitted]

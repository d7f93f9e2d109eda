"""Exchanges drawn by chance, a bounded number of them, however large the store is."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from memory.index import generations
from memory.models import Exchange, Job
from memory.spaces.access import SpaceIds, in_spaces

MAX_SAMPLE = 1000


def sample_exchanges(count: int, spaces: SpaceIds | None) -> list[Exchange]:
    """At most `count` exchanges (never more than MOST) of `spaces`, None: of all, that are in the serving index.

    Their ids are random, so a stretch of ids from a random one on is as good as a draw, and reads no other row.
    """
    rows: QuerySet[Exchange] = Exchange.objects.findable().filter(
        embeddings__generation=generations.active_generation(), embeddings__state=Job.State.DONE
    )
    rows = rows if spaces is None else in_spaces(rows, spaces)
    start, count = uuid.uuid4(), min(count, MAX_SAMPLE)
    found = list(rows.filter(id__gte=start).order_by("id")[:count])
    return found + list(rows.filter(id__lt=start).order_by("id")[: count - len(found)])

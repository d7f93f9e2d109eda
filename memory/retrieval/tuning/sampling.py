"""Random samples of exchanges, bounded in size."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from memory.index import generations
from memory.models import Exchange, Job
from memory.spaces.access import SpaceIds, in_spaces

MAX_SAMPLE = 1000


def sample_exchanges(count: int, spaces: SpaceIds | None) -> list[Exchange]:
    """Return at most `count` (and MAX_SAMPLE) indexed exchanges of `spaces`, None: of all.

    Ids are random, so a range of ids from a random start is a random sample, and reads no other rows.
    """
    rows: QuerySet[Exchange] = Exchange.objects.findable().filter(
        embeddings__generation=generations.active_generation(), embeddings__state=Job.State.DONE
    )
    rows = rows if spaces is None else in_spaces(rows, spaces)
    start, count = uuid.uuid4(), min(count, MAX_SAMPLE)
    found = list(rows.filter(id__gte=start).order_by("id")[:count])
    return found + list(rows.filter(id__lt=start).order_by("id")[: count - len(found)])

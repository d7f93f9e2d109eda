"""What stands around an exchange: the messages before and after it in its thread, or the chunks of its document."""

from __future__ import annotations

import uuid

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memory.documents.locations import locations_of
from memory.errors import NotFoundError
from memory.exchanges.feedback import feedback_of
from memory.filters import Filter, to_sql
from memory.models import Chunk, Exchange
from memory.retrieval.types import ExchangeView, Hit, listed_hit
from memory.spaces.access import SpaceIds, in_spaces

STRATEGY = "surroundings"
_BEFORE, _AFTER = 1, 3


def surroundings(
    exchange_id: uuid.UUID,
    *,
    spaces: SpaceIds,
    person_id: uuid.UUID,
    filters: Filter | None = None,
) -> list[Hit]:
    """Return the exchange before this one and up to three after it, in their order, without itself.

    Those that do not match `filters`, or that `person_id` has marked as not relevant, are left out. They are hits without
    similarity and explanation. Raises NotFoundError if the exchange is not findable in `spaces`.
    """
    findable = in_spaces(Exchange.objects.findable(), spaces).select_related("owner")
    exchange = findable.filter(id=exchange_id).first()
    if exchange is None:
        raise NotFoundError(_("Not found."))
    findable = findable.exclude(pk__in=feedback_of(person_id).irrelevant)
    if filters is not None:
        findable = findable.filter(to_sql(filters))
    location = locations_of([exchange.id]).get(exchange.id)
    if location is not None:
        near = (location.index - _BEFORE, location.index + _AFTER)
        chunks = Chunk.objects.filter(version=location.version_id, index__range=near).exclude(exchange=exchange)
        rows = list(findable.filter(id__in=chunks.values("exchange_id")))
    elif exchange.thread_id is not None:
        rows = _neighbours(findable.filter(thread_id=exchange.thread_id), exchange)
    else:
        rows = []
    locations = locations_of(row.id for row in rows)
    views = [ExchangeView.from_row(row, locations.get(row.id)) for row in rows]
    views.sort(key=lambda view: (view.location.index if view.location else 0, view.timestamp, view.id))
    return [listed_hit(view, STRATEGY) for view in views]


def _neighbours(rows: QuerySet[Exchange], exchange: Exchange) -> list[Exchange]:
    same_time = Q(timestamp=exchange.timestamp)
    earlier = rows.filter(Q(timestamp__lt=exchange.timestamp) | (same_time & Q(id__lt=exchange.id)))
    later = rows.filter(Q(timestamp__gt=exchange.timestamp) | (same_time & Q(id__gt=exchange.id)))
    return [*earlier.order_by("-timestamp", "-id")[:_BEFORE], *later.order_by("timestamp", "id")[:_AFTER]]

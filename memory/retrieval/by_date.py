"""List what filters cover, without words to search for, the newest first."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db.models import Q, QuerySet

from memory.filters import Filter, to_sql
from memory.models import Exchange
from memory.retrieval.exchange_views import load_views
from memory.retrieval.types import Hit, listed_hit
from memory.spaces.access import SpaceIds, in_spaces
from memory.spaces.newest import newest_in_spaces

# Of hits that are listed by date alone.
BY_DATE = "date"


def ids_by_date(spaces: SpaceIds, filters: Filter | None, newest: int | None = None) -> QuerySet[Exchange, uuid.UUID]:
    """Return the ids of the exchanges in these spaces that match the filters, the newest first.

    With `newest`, only the first so many are sure to be among them, which is quicker. Ids only: the database sorts all of
    them, and texts would be sorted with them.
    """
    findable, condition = Exchange.objects.findable(), to_sql(filters) if filters else Q()
    if newest is None:
        rows = in_spaces(findable, spaces).filter(condition)
    else:
        rows = newest_in_spaces(findable, spaces, newest, by="timestamp", where=condition)
    return rows.order_by("-timestamp", "id").values_list("pk", flat=True)


def listed_hits(ids: Sequence[uuid.UUID], explanation: str = "") -> list[Hit]:
    """Return hits for these findable exchanges, in this order; without an explanation, their dates are the reason."""
    views = load_views(ids)
    return [listed_hit(views[id], BY_DATE, explanation) for id in ids if id in views]

"""The newest rows of several spaces, found by the index of each space instead of sorting all that can be read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import F, Model, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from memory.models import Space

_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_ALL = Q()
M = TypeVar("M", bound=Model)
R = TypeVar("R")


def newest_in_spaces(
    rows: QuerySet[M, R], spaces: Iterable[UUID], count: int, *, by: str, where: Q = _ALL
) -> QuerySet[M, R]:
    """Limit `rows` to few, among which are the `count` newest in these spaces that meet `where`; their order stays.

    The space with the latest row number `count` has `count` rows from then on, so no older row of another space is needed.
    If every space has fewer rows than that, all of them remain. `by` names the time, on which the model has an index
    (space, -time). For conditions that most rows meet: with few matches, a space is read twice.
    """
    numbered = rows.filter(where, space=OuterRef("pk")).order_by(f"-{by}").values(by)[count - 1 : count]
    latest = (
        Space.objects.filter(pk__in=list(spaces))
        .annotate(since=Subquery(numbered))
        .order_by(F("since").desc(nulls_last=True))
        .values("since")[:1]
    )
    since = Coalesce(Subquery(latest), Value(_EARLIEST))
    # The bound comes before other conditions on the time, of which SQLite uses the first one with an index.
    return rows.filter(space__in=list(spaces), **{f"{by}__gte": since}).filter(where)

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
    """Return a few of the `rows` that meet `where`, in the same order, with the `count` newest of these spaces among them.

    In each space, the time of the row at place `count`, counted from the newest, is read from an index. Rows before the latest
    of these times are left out, because that space alone has `count` newer ones. If all spaces have fewer than `count`
    rows, nothing is left out. At most `count` rows of each space remain, and more only if they have the same time.

    `by` is the field with the time; the model needs an index on the space and this field. If few rows meet `where`, this
    takes longer than sorting them, because each space is read twice.
    """
    at_place_count = rows.filter(where, space=OuterRef("pk")).order_by(f"-{by}").values(by)[count - 1 : count]
    latest = (
        Space.objects.filter(pk__in=list(spaces))
        .annotate(since=Subquery(at_place_count))
        .order_by(F("since").desc(nulls_last=True))
        .values("since")[:1]
    )
    since = Coalesce(Subquery(latest), Value(_EARLIEST))
    # This condition comes before `where`: of several lower bounds of the time, SQLite uses the first for the index.
    return rows.filter(space__in=list(spaces), **{f"{by}__gte": since}).filter(where)

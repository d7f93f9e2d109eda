"""Process many rows or ids in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db.models import QuerySet

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in non-empty lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def iterate_by_pk(rows: QuerySet[Any, T], size: int) -> Iterator[list[T]]:
    """Yield the rows in lists of at most `size`, ordered by primary key.

    `rows` may be a `values_list` whose first value is the primary key. Each list is read when the previous one has been
    processed. Rows may be added or deleted meanwhile; rows that exist throughout are yielded once.
    """
    ordered = rows.order_by("pk")
    page = list(ordered[:size])
    while page:
        yield page
        last: Any = page[-1]
        page = list(ordered.filter(pk__gt=last[0] if isinstance(last, tuple) else last.pk)[:size])

"""Working through many rows or ids a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db.models import QuerySet

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`; none of them empty."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def iterate_by_pk(rows: QuerySet[Any, T], size: int) -> Iterator[list[T]]:
    """The rows, or their values (the first of which is the primary key), in lists of at most `size`, by primary key.

    Each list is read when the one before it has been dealt with. Rows may come and go meanwhile: each that is there all
    the time is met once.
    """
    ordered = rows.order_by("pk")
    page = list(ordered[:size])
    while page:
        yield page
        last: Any = page[-1]
        page = list(ordered.filter(pk__gt=last[0] if isinstance(last, tuple) else last.pk)[:size])

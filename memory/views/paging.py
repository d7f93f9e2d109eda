"""Pages of lists that can be very long, such as all exchanges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

_MAX_COUNTED = 10_000


class LongPaginator(Paginator):  # type: ignore[type-arg]  # Django's cannot be subscripted at run time
    """Pages of a sorted query set, whose rows are counted up to 10,000, or up to the page that is asked for.

    `first(n)` returns rows in the same order among which the first `n` are, if that is quicker than sorting all.
    `is_by_name`: the rows are not in the order of time.
    """

    def __init__(
        self,
        rows: QuerySet[Any, Any],
        per_page: int,
        *,
        first: Callable[[int], QuerySet[Any, Any]] | None = None,
        is_by_name: bool = False,
    ) -> None:
        """Read nothing yet."""
        super().__init__(rows, per_page)
        self.is_by_name = is_by_name
        self._rows = rows
        self._first = first
        self._limit = _MAX_COUNTED

    def get_page(self, number: str | float | None) -> Page[Any]:
        """Return this page: the first one for what is no number, the last one for a number that is too high."""
        if str(number).isdecimal() and len(str(number)) < 9:
            self._limit = max(_MAX_COUNTED, int(str(number)) * self.per_page)
        return super().get_page(number)

    def page(self, number: str | int) -> Page[Any]:
        """Return this page. Raises InvalidPage."""
        number = self.validate_number(number)
        end = number * self.per_page
        rows = self._first(end) if self._first else self._rows
        return Page(rows[end - self.per_page : end], number, self)

    @cached_property
    def count(self) -> int:
        """Return the number of rows, as far as they are counted; one more if there are others."""
        return self._rows.order_by()[: self._limit + 1].count()

    @property
    def is_cut(self) -> bool:
        """Return whether there are more rows than were counted."""
        return self.count > self._limit

    @property
    def counted_rows(self) -> int:
        """Return the number of rows that were counted."""
        return min(self.count, self._limit)

    @property
    def counted_pages(self) -> int:
        """Return the number of pages of the rows that were counted."""
        return -(-self.counted_rows // self.per_page)

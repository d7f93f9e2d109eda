"""List what filters cover, without words to search for, the newest first."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from memory.documents.locations import locations_of
from memory.filters import Filter, to_sql
from memory.models import Exchange
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces.access import SpaceIds, in_spaces


def exchanges_by_date(spaces: SpaceIds, filters: Filter | None) -> QuerySet[Exchange]:
    """Return the exchanges in these spaces that match the filters, the newest first."""
    rows = in_spaces(Exchange.objects.findable(), spaces).select_related("owner", "statement")
    return (rows.filter(to_sql(filters)) if filters else rows).order_by("-timestamp", "id")


def as_hits(rows: Sequence[Exchange]) -> list[Hit]:
    """Return the rows of `exchanges_by_date` as hits, which nothing but their dates explains."""
    locations = locations_of(row.pk for row in rows if row.source_file)
    return [
        Hit(
            exchange=ExchangeView.from_row(row, locations.get(row.pk)),
            similarity=None,
            score=0.0,
            strategy="date",
            explanation="",
            is_below_gate=False,
        )
        for row in rows
    ]

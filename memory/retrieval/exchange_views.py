"""Load exchanges as they are shown to readers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from memory.documents.locations import locations_of
from memory.models import Exchange
from memory.retrieval.types import ExchangeView


def load_views(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ExchangeView]:
    """Return the findable ones among these exchanges by id, passages of documents with their location."""
    findable = Exchange.objects.findable().select_related("owner", "statement").only(*ExchangeView.COLUMNS)
    rows = findable.in_bulk(list(ids))
    locations = locations_of(id for id, row in rows.items() if row.source_file)
    return {id: ExchangeView.from_row(row, locations.get(id)) for id, row in rows.items()}

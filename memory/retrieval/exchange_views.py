"""Load exchanges as they are shown to readers, and check whether somebody may still read them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from memory.documents.locations import locations_of
from memory.models import Exchange
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces.access import SpaceIds, in_spaces, readable_spaces


def load_views(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ExchangeView]:
    """Return the findable ones among these exchanges by id, passages of documents with their location."""
    findable = Exchange.objects.findable().select_related("owner", "statement").only(*ExchangeView.COLUMNS)
    rows = findable.in_bulk(list(ids))
    locations = locations_of(id for id, row in rows.items() if row.source_file)
    return {id: ExchangeView.from_row(row, locations.get(id)) for id, row in rows.items()}


def still_readable(hits: Sequence[Hit], *, spaces: SpaceIds, reader_id: uuid.UUID) -> list[Hit]:
    """Return the hits that are still findable in those of `spaces` that this person may read now."""
    ids = still_readable_ids([hit.exchange.id for hit in hits], spaces=spaces, reader_id=reader_id)
    return [hit for hit in hits if hit.exchange.id in ids]


def still_readable_ids(ids: Sequence[uuid.UUID], *, spaces: SpaceIds, reader_id: uuid.UUID) -> set[uuid.UUID]:
    """Return the ids of the exchanges that are still findable in those of `spaces` that this person may read now.

    An embedding model may take seconds, in which the person can lose a space, or something can be forgotten or moved.
    """
    if not ids:
        return set()
    found = in_spaces(Exchange.objects.findable().filter(id__in=ids), spaces)
    return set(found.filter(space__in=readable_spaces(reader_id)).values_list("id", flat=True))

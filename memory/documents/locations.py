"""Locations of recalled chunks in their documents."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F

from memory.models import Chunk


@dataclass(frozen=True, slots=True)
class ChunkLocation:
    """Location of a chunk in a live version; `start` and `end` are character offsets in the extracted text.

    `separator` is the white space before the chunk. `label` names the page, slide, sheet or heading, "" if none exists.
    `version_number` counts the versions of the document from 1.
    """

    document_id: uuid.UUID
    version_id: uuid.UUID
    index: int
    start: int
    end: int
    separator: str
    label: str
    version_number: int


# The columns of a chunk in the order of the fields of its location.
LOCATION_COLUMNS = (
    "version__document_id",
    "version_id",
    "index",
    "start",
    "end",
    "separator",
    "location",
    "version__number",
)


def locations_of(exchange_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ChunkLocation]:
    """Return the locations of those exchanges that are chunks, by exchange id."""
    ids = list(exchange_ids)
    if not ids:
        return {}
    live_version = Chunk.objects.filter(exchange_id__in=ids, version__document__live_version=F("version"))
    rows = live_version.values_list("exchange_id", *LOCATION_COLUMNS)
    return {row[0]: ChunkLocation(*row[1:]) for row in rows}

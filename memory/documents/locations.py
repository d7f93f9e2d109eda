"""Where in a document a recalled piece stands."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F

from memory.models import Chunk


@dataclass(frozen=True, slots=True)
class ChunkLocation:
    """A piece of the version of a document that serves; `start` and `end` in characters of the file's text.

    `joint` is the white space before it; `label` says page, slide, sheet or heading in words, "" where there is none.
    """

    document_id: uuid.UUID
    version_id: uuid.UUID
    index: int
    start: int
    end: int
    joint: str
    label: str


def locations_of(exchange_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ChunkLocation]:
    """The places of those of these exchanges that are pieces of documents."""
    ids = list(exchange_ids)
    if not ids:
        return {}
    serving = Chunk.objects.filter(exchange_id__in=ids, version__document__serving=F("version"))
    rows = serving.values_list(
        "exchange_id", "version__document_id", "version_id", "index", "start", "end", "joint", "place"
    )
    return {row[0]: ChunkLocation(*row[1:]) for row in rows}

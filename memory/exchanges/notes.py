"""Store notes and plain text files as exchanges; long texts are split into chunks."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext as _

from memory.documents.chunking import split
from memory.errors import InvalidInputError
from memory.exchanges.lifecycle import Metadata, NewExchange, remember_many
from memory.models import Exchange, Space
from memory.spaces.access import ensure_open
from memory.text import clean_text


def add_note(
    text: str,
    *,
    space: Space,
    owner_id: uuid.UUID,
    source: str,
    source_file: str = "",
    manual_entry: bool = False,
    timestamp: datetime | None = None,
    metadata: Metadata | None = None,
    note_id: uuid.UUID | None = None,
) -> list[Exchange]:
    """Store `text` as one or more exchanges, in text order, each with the metadata.

    `note_id` becomes the id of the first one, and the ids of the others are derived from it.

    Raises InvalidInputError for an empty text, invalid metadata and an archived project, and VectorStoreDisabledError.
    """
    ensure_open(space)
    text = clean_text(text)
    configured = settings.CATO.vector_store
    spans = list(
        split(
            text,
            strategy=configured.chunking_strategy,
            chunk_size=configured.chunk_size,
            chunk_overlap=configured.chunk_overlap,
            max_chunk_size=configured.max_chunk_size,
            preserve_sentence_boundaries=configured.preserve_sentence_boundaries,
        )
    )
    if not spans:
        raise InvalidInputError(_("There is nothing to remember: the text is empty."))
    return remember_many(
        [
            NewExchange(
                id=uuid.uuid5(note_id, str(number)) if note_id and number else note_id,
                space=space,
                owner_id=owner_id,
                user_message=text[span.start : span.end],
                source=source,
                source_file=source_file,
                manual_entry=manual_entry,
                timestamp=timestamp,
                metadata=metadata or {},
                chunk_index=number,
                total_chunks=len(spans),
            )
            for number, span in enumerate(spans)
        ]
    )

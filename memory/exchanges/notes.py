"""Store notes and plain text files as exchanges; long texts are split into chunks."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memory.documents.chunking.configured import split_as_configured
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
    spans = list(split_as_configured(text))
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

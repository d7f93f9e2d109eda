"""Keeping text that nobody said in a conversation: notes and plain text files, in pieces where they are long."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import transaction

from memory.chunking import split
from memory.errors import BadQuery
from memory.models import Exchange, Space
from memory.services.exchanges import remember
from memory.text import clean_text


@transaction.atomic
def keep_text(
    text: str, *, space: Space, owner_id: uuid.UUID, source: str, source_file: str = "", manual_entry: bool = False
) -> list[Exchange]:
    """Remember `text` as one or more exchanges, in its order. Raises BadQuery for an empty text, StoreDisabled."""
    text = clean_text(text)
    spans = split(text, chunk_size=settings.CATO.vector_store.chunk_size)
    if not spans:
        raise BadQuery("There is nothing to remember: the text is empty.")
    kept = [
        remember(
            space=space,
            owner_id=owner_id,
            user_message=text[span.start : span.end],
            source=source,
            source_file=source_file,
            manual_entry=manual_entry,
        )
        for span in spans
    ]
    for number, exchange in enumerate(kept):
        Exchange.objects.filter(pk=exchange.pk).update(chunk_index=number, total_chunks=len(kept))
    return kept

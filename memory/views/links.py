"""The permanent address at which something remembered stands."""

from __future__ import annotations

import uuid

from django.urls import reverse

from memory.documents.locations import ChunkLocation
from memory.models import Exchange
from memory.retrieval.types import ExchangeView


def exchange_url(said: ExchangeView) -> str:
    """The passage in its document, or where it was said."""
    return passage_url(said.location) if said.location else Exchange(pk=said.id).get_absolute_url()


def passage_url(location: ChunkLocation) -> str:
    """The document's page, opened at this passage."""
    return f"{document_url(location.document_id)}?at={location.start}#passage-{location.index + 1}"


def document_url(document_id: uuid.UUID) -> str:
    return reverse("document", args=[document_id])

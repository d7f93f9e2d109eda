"""Addresses of exchanges, passages and documents."""

from __future__ import annotations

import uuid

from django.urls import reverse

from memory.documents.locations import ChunkLocation
from memory.models import Exchange
from memory.retrieval.types import ExchangeView


def exchange_url(exchange: ExchangeView) -> str:
    """Return the address of the passage in its document, or of the exchange's own page."""
    return passage_url(exchange.location) if exchange.location else Exchange(pk=exchange.id).get_absolute_url()


def passage_url(location: ChunkLocation) -> str:
    """Return the address of the document's page at this passage."""
    return f"{document_url(location.document_id)}?at={location.start}#passage-{location.index + 1}"


def document_url(document_id: uuid.UUID) -> str:
    """Return the address of the document's page."""
    return reverse("document", args=[document_id])

"""The permanent address at which something remembered stands."""

from __future__ import annotations

import uuid

from django.urls import reverse

from memory.documents.locations import Place
from memory.retrieval.types import Remembered


def address_of(said: Remembered) -> str:
    """The passage in its document, or where it was said."""
    return address_in_document(said.place) if said.place else reverse("exchange", args=[said.id])


def address_in_document(place: Place) -> str:
    """The document's page, opened at this passage."""
    return f"{document_address(place.document_id)}?at={place.start}#passage-{place.index + 1}"


def document_address(document_id: uuid.UUID) -> str:
    return reverse("document", args=[document_id])

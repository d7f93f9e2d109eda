"""Template rows of what a project contains: its latest threads and documents, and how many there are."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from chat import access
from memory import api as memory
from memory.api import Exchange, Space

_MAX_LINKS = 8


@dataclass(frozen=True, slots=True)
class ContentLink:
    """A thread or document; `at` is when somebody last wrote in the thread, or added the document."""

    title: str
    url: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SpaceContents:
    """The latest threads and documents of a space, and the numbers of all of them and of its notes."""

    threads: Sequence[ContentLink]
    thread_count: int
    documents: Sequence[ContentLink]
    document_count: int
    note_count: int


def space_contents(person_id: uuid.UUID, space: Space) -> SpaceContents:
    """Return what the space contains, nothing of it if this person cannot read it."""
    threads = access.readable_threads(person_id).filter(space=space)
    readable = memory.readable_space_ids(person_id) & {space.pk}
    documents = memory.active_documents(readable)
    notes = memory.in_spaces(Exchange.objects.findable(), readable).filter(source=Exchange.Source.NOTE)
    return SpaceContents(
        threads=[
            ContentLink(row.title, reverse("thread", args=[row.id]), row.last_message_at)
            for row in threads.order_by("-last_message_at")[:_MAX_LINKS]
        ],
        thread_count=threads.count(),
        documents=[
            ContentLink(row.name, memory.document_url(row.pk), row.created_at)
            for row in documents.order_by("-created_at")[:_MAX_LINKS]
        ],
        document_count=documents.count(),
        note_count=notes.exclude(chunk_index__gt=0).count(),
    )

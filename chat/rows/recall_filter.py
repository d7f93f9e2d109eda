"""What the composer shows about a recall filter."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from chat.models import Thread
from memory import api as memory
from memory.api import NO_FILTER, RecallFilter, describe_recall_filter, format_metadata


@dataclass(frozen=True, slots=True)
class RecallFilterRow:
    """A recall filter: its description, and for a new thread the values to send with the first message.

    `change_url` and `remove_url` are "" for people who may not change it.
    """

    words: Sequence[str] = ()
    change_url: str = ""
    remove_url: str = ""
    ids: Sequence[uuid.UUID] = ()
    metadata_text: str = ""


def recall_filter_row(thread: Thread, person_id: uuid.UUID, *, can_change: bool) -> RecallFilterRow:
    """Return the row of a thread's recall filter."""
    words = _describe(RecallFilter.from_json(thread.recall_filter), person_id)
    url = reverse("recall_filter", args=[thread.id]) if can_change else ""
    return RecallFilterRow(words, url, url)


def recall_filter_row_of_new_thread(recall_filter: RecallFilter, person_id: uuid.UUID) -> RecallFilterRow:
    """Return the row of the recall filter of a thread that this person starts."""
    return RecallFilterRow(
        _describe(recall_filter, person_id),
        remove_url=reverse("new_thread_recall_filter"),
        ids=recall_filter.documents,
        metadata_text=format_metadata(recall_filter.metadata),
    )


def _describe(recall_filter: RecallFilter, person_id: uuid.UUID) -> list[str]:
    if recall_filter == NO_FILTER:
        return []
    return describe_recall_filter(recall_filter, spaces=memory.readable_space_ids(person_id))

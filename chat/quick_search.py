"""Quick search for threads by title, memories, turns not in memory, documents by name, and commands."""

from __future__ import annotations

import uuid
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TypeVar

from django.db.models import Exists, Model, OuterRef, QuerySet

from chat import access
from chat.commands import Command, for_roles
from chat.models import Thread, Turn
from chat.threads.reader_marks import with_marks
from memory import api as memory
from memory.api import CatoError, Document, Exchange, Hit, active_documents, count_search

_GROUP_SIZE = 5
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class QuickSearchResults:
    """The results by kind, best first; `note` says if memory could not be searched, or only by keyword."""

    threads: list[Thread] = field(default_factory=list)
    memories: list[Hit] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    note: str = ""


def quick_search(text: str, *, person_id: uuid.UUID, roles: Set[str] = frozenset()) -> QuickSearchResults:
    """Search everything that this person may read, and the commands for these roles outside of threads."""
    words = text.split()
    if not words:
        threads = with_marks(access.readable_threads(person_id), person_id).filter(archived_at=None)
        return QuickSearchResults(threads=list(threads.order_by("-last_message_at")[:_GROUP_SIZE]))
    note, memories = "", list[Hit]()
    try:
        count_search(person_id)
        readable = memory.readable_space_ids(person_id)
        results = memory.search(text, spaces=readable, count=_GROUP_SIZE, reader_id=person_id)
        note = results.note_text
        memories = [hit for hit in results.results if not hit.is_below_gate or "words" in hit.ranks]
    except CatoError as error:
        note = str(error)
    # Read after the search, which can have taken seconds.
    readable, threads = memory.readable_space_ids(person_id), access.readable_threads(person_id)
    command_prefix = text.lstrip("/").lower()
    return QuickSearchResults(
        threads=list(contains_all_words(threads, words, "title").order_by("-last_message_at")[:_GROUP_SIZE]),
        memories=memories,
        turns=list(_search_unstored_turns(threads, words)),
        documents=list(
            contains_all_words(active_documents(readable), words, "name").order_by("-created_at")[:_GROUP_SIZE]
        ),
        commands=[command for command in for_roles(roles) if command.name.startswith(command_prefix)][:3],
        note=note,
    )


def find_related(thread: Thread, person_id: uuid.UUID) -> list[tuple[Thread, float]]:
    """Return readable threads on the same subject with their scores, best first. Raises CatoError."""
    results = memory.related_threads(thread.id, spaces=memory.readable_space_ids(person_id))
    rows = (
        with_marks(access.readable_threads(person_id), person_id)
        .select_related("space", "owner")
        .in_bulk([result.thread_id for result in results])
    )
    return [(rows[result.thread_id], result.score) for result in results if result.thread_id in rows]


def contains_all_words(rows: QuerySet[M], words: list[str], field_name: str) -> QuerySet[M]:
    """Filter rows whose field contains all words, in any case and order."""
    for word in words:
        rows = rows.filter(memory.contains(field_name, word))
    return rows


def _search_unstored_turns(threads: QuerySet[Thread], words: list[str]) -> QuerySet[Turn]:
    """Return the latest turns with these words in threads that are not saved to memory."""
    rows: QuerySet[Turn] = Turn.objects.active_branch().filter(
        thread__in=threads.filter(is_remembered=False), exchange_id=None
    )
    # The original of a copied turn can have been forgotten.
    forgotten = Exchange.objects.filter(pk=OuterRef("copied_exchange_id")).exclude(forgotten_at=None)
    rows = rows.filter(~Exists(forgotten))
    for word in words:
        rows = rows.filter(memory.contains("message", word) | memory.contains("answer", word))
    return rows.select_related("thread").order_by("-created_at")[:_GROUP_SIZE]

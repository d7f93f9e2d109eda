"""The messages that mention a person, and the people whom they can mention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from chat import access
from chat.mentions import candidates, mentions_of
from chat.rows.turns import MessagePart, message_parts
from memory import api as memory
from memory.api import LongPaginator, PageRequest, active_documents, excerpt, parse_uuid

_PAGE_SIZE = 50
_EXCERPT = 240  # characters
_MAX_PEOPLE, _MAX_DOCUMENTS = 500, 500  # in the list of the composer


@dataclass(frozen=True, slots=True)
class MentionRow:
    """A message that mentions the reader."""

    turn: Any
    parts: list[MessagePart]
    is_seen: bool


@require_GET
def mentions(request: PageRequest) -> HttpResponse:
    """List the messages that mention this person, newest first."""
    rows = mentions_of(request.user.pk).select_related("turn__author", "turn__thread__space")
    page = LongPaginator(rows, _PAGE_SIZE).get_page(request.GET.get("page"))
    found = [
        MentionRow(row.turn, message_parts(excerpt(row.turn.message, _EXCERPT), [request.user.name]), row.is_seen)
        for row in page
    ]
    return render(request, "chat/mentions.html", {"section": "mentions", "page": page, "rows": found})


@require_GET
def people(request: PageRequest) -> HttpResponse:
    """Return what to choose from after an @: `?thread=` or, for a new thread, `?space=`.

    Documents are offered to people who may limit the recall of the thread to them.
    """
    thread_id, space_id = (parse_uuid(request.GET.get(name, "")) for name in ("thread", "space"))
    thread = access.get_marked_thread(request.user.pk, thread_id) if thread_id else None
    space = memory.get_space(request.user.pk, space_id) if space_id else None
    names = candidates(request.user.pk, thread, space)[:_MAX_PEOPLE]
    documents: Iterable[Any] = ()
    if thread is None or access.can_configure(request.user.pk, thread):
        place = thread.space if thread is not None else space or memory.personal_space(request.user.pk)
        # Recall uses only the spaces that all readers of the thread may read.
        recalled = active_documents(memory.space_ids_shared_by_all_readers(place.pk)).exclude(live_version=None)
        documents = recalled.order_by("-created_at")[:_MAX_DOCUMENTS]
    url = reverse("recall_filter", args=[thread.id]) if thread is not None else reverse("new_thread_recall_filter")
    context = {"people": names, "documents": documents, "filter_url": url}
    return render(request, "chat/_mention_options.html", context)

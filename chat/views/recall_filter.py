"""Choosing what a thread's recall is confined to."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat import access, services
from memory import api as memory
from memory.api import (
    InvalidInputError,
    PageRequest,
    RecallFilter,
    SpaceIds,
    active_documents,
    build_recall_filter,
    format_metadata,
    parse_metadata,
)

_MOST_SHOWN = 200


def scope_in(sent: QueryDict, readable: SpaceIds) -> RecallFilter:
    """The scope that a form or an address names: `only` for each document, `only_metadata` for lines of metadata.

    Raises InvalidInputError.
    """
    return build_recall_filter(sent.getlist("only"), parse_metadata(sent.get("only_metadata", "")), spaces=readable)


@require_http_methods(["GET", "POST"])
def scope(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """The documents to choose from, those chosen first; by POST the choice is kept on the thread."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    # What everyone who reads the thread may read: its recall brings nothing else.
    readable = memory.space_ids_shared_by_all_readers(thread.space_id)
    if request.method == "POST":
        try:
            services.set_recall_filter(thread, scope_in(request.POST, readable))
        except InvalidInputError as error:
            messages.error(request, str(error))
            return redirect("scope", thread_id)
        return redirect("thread", thread_id)
    chosen = RecallFilter.from_json(thread.scope)
    rows = active_documents(readable).exclude(live_version=None).order_by("-created_at")
    first = list(rows.filter(pk__in=chosen.documents))
    others = list(rows.exclude(pk__in=chosen.documents)[:_MOST_SHOWN])
    context = {
        "section": "thread",
        "thread": thread,
        "documents": [(row, row in first) for row in [*first, *others]],
        "metadata_text": format_metadata(chosen.metadata),
    }
    return render(request, "chat/recall_filter.html", context)

"""The page of a thread's recall filter."""

from __future__ import annotations

import uuid

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chat import access, services
from chat.rows.recall_filter import RecallFilterRow, recall_filter_row, recall_filter_row_of_new_thread
from memory import api as memory
from memory.api import (
    NO_FILTER,
    InvalidInputError,
    PageRequest,
    RecallFilter,
    SpaceIds,
    active_documents,
    build_recall_filter,
    format_metadata,
    parse_metadata,
    parse_uuid,
)

_MAX_DOCUMENTS = 200


def parse_recall_filter(data: QueryDict, readable: SpaceIds) -> RecallFilter:
    """Parse the fields `only` (repeated document ids) and `only_metadata` (lines). Raises InvalidInputError."""
    return build_recall_filter(data.getlist("only"), parse_metadata(data.get("only_metadata", "")), spaces=readable)


def parse_filter_of_new_thread(data: QueryDict, person_id: uuid.UUID) -> RecallFilter:
    """Parse the same fields, for a thread that this person starts. Raises InvalidInputError."""
    if not data.get("only") and not data.get("only_metadata"):
        return NO_FILTER
    return parse_recall_filter(data, memory.readable_space_ids(person_id))


@require_POST
def new_thread_recall_filter(request: PageRequest) -> HttpResponse:
    """Return what the composer of a new thread says about these fields, with the document `add` if there is one."""
    recall_filter = parse_filter_of_new_thread(_with_added(request.POST, NO_FILTER), request.user.pk)
    if not request.htmx:
        return redirect("new_thread")
    return _fragment(request, recall_filter_row_of_new_thread(recall_filter, request.user.pk))


def _with_added(data: QueryDict, current: RecallFilter) -> QueryDict:
    """Return the fields with the document `add`, which is added to the current filter."""
    if not data.get("add"):
        return data
    data = data.copy()
    data.setlist("only", [*map(str, current.documents), *data.getlist("only"), *data.getlist("add")])
    data.setdefault("only_metadata", format_metadata(current.metadata))
    return data


def _fragment(request: PageRequest, row: RecallFilterRow) -> HttpResponse:
    return render(request, "chat/_recall_filter.html", {"recall_filter": row})


@require_http_methods(["GET", "POST"])
def recall_filter(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the documents to choose from, chosen ones first; POST saves the recall filter, or adds the document `add`."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    # Recall uses only the spaces that all readers of the thread may read.
    readable = memory.space_ids_shared_by_all_readers(thread.space_id)
    chosen = RecallFilter.from_json(thread.recall_filter)
    ids, metadata_text, error = list(chosen.documents), format_metadata(chosen.metadata), ""
    if request.method == "POST":
        try:
            services.set_recall_filter(thread, parse_recall_filter(_with_added(request.POST, chosen), readable))
        except InvalidInputError as invalid:
            if request.htmx:
                raise
            ids = [id for text in request.POST.getlist("only") if (id := parse_uuid(text))]
            metadata_text, error = request.POST.get("only_metadata", ""), str(invalid)
        else:
            if request.htmx:
                return _fragment(request, recall_filter_row(thread, request.user.pk, can_change=True))
            return redirect("thread", thread_id)
    rows = active_documents(readable).exclude(live_version=None).order_by("-created_at")
    first = list(rows.filter(pk__in=ids))
    others = list(rows.exclude(pk__in=ids)[:_MAX_DOCUMENTS])
    context = {
        "section": "thread",
        "thread": thread,
        "documents": [(row, row in first) for row in [*first, *others]],
        "metadata_text": metadata_text,
        "error": error,
    }
    return render(request, "chat/recall_filter.html", context, status=422 if error else 200)

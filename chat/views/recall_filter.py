"""Choosing what a thread's recall is confined to."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat import access, services
from memory.documents.queries import among_living
from memory.errors import InvalidInputError
from memory.requests import PageRequest
from memory.retrieval.recall_filter import Scope, scope_of
from memory.spaces import access as spaces
from memory.spaces.access import SpaceIds
from memory.views.metadata_form import metadata_of, metadata_text

_MOST_SHOWN = 200


def scope_in(sent: QueryDict, readable: SpaceIds) -> Scope:
    """The scope that a form or an address names: `only` for each document, `only_metadata` for lines of metadata.

    Raises InvalidInputError.
    """
    return scope_of(sent.getlist("only"), metadata_of(sent.get("only_metadata", "")), spaces=readable)


@require_http_methods(["GET", "POST"])
def scope(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """The documents to choose from, those chosen first; by POST the choice is kept on the thread."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    # What everyone who reads the thread may read: its recall brings nothing else.
    readable = spaces.read_by_all_of(thread.space_id)
    if request.method == "POST":
        try:
            services.set_scope(thread, scope_in(request.POST, readable))
        except InvalidInputError as error:
            messages.error(request, str(error))
            return redirect("scope", thread_id)
        return redirect("thread", thread_id)
    chosen = Scope.from_json(thread.scope)
    rows = among_living(readable).exclude(serving=None).order_by("-created_at")
    first = list(rows.filter(pk__in=chosen.documents))
    others = list(rows.exclude(pk__in=chosen.documents)[:_MOST_SHOWN])
    context = {
        "section": "thread",
        "thread": thread,
        "documents": [(row, row in first) for row in [*first, *others]],
        "metadata_text": metadata_text(chosen.metadata),
    }
    return render(request, "chat/recall_filter.html", context)

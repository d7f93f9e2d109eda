"""List of all documents for administrators, with bulk deletion; names are shown only where they may be read."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, npgettext
from django.views.decorators.http import require_GET, require_POST

from memory.administration import filters, operations
from memory.documents.queries import document_statuses
from memory.models import Document, Operation
from memory.spaces import access
from memory.utils.formatting import format_number
from memory.views.administration.shared import (
    BulkSelection,
    active_reveal_rows,
    parse_bulk_selection,
    space_column,
    start_operation,
)
from memory.views.document_rows import state_text
from memory.views.http import PageRequest, admin_required
from memory.views.paging import LongPaginator

_PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document; `name` and `url` are empty if the administrator may not read it."""

    id: uuid.UUID
    name: str
    url: str
    size_text: str
    who: str
    space_name: str
    space_kind: str
    version: int | None
    state: str
    added_at: datetime
    reveal_url: str


@admin_required
@require_GET
def documents(request: PageRequest) -> HttpResponse:
    """List the documents that match the filters, newest first."""
    visible_spaces = access.admin_visible_space_ids(request.user.pk)
    selection = filters.documents(request.GET, visible_spaces=visible_spaces)
    page = LongPaginator(selection.qs.select_related("owner", "space__owner"), _PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    rows = _rows(request, list(page), visible_spaces)
    context = {
        "section": "admin",
        "tab": "documents",
        "selection": selection,
        "filters": request.GET.urlencode(),
        "page": page,
        "rows": rows,
        # One group: documents are not collapsed.
        "groups": [{"rows": rows}],
        "reveals": active_reveal_rows(request),
    }
    return render(request, "memory/admin_documents.html", context)


@admin_required
@require_POST
def forget(request: PageRequest) -> HttpResponse:
    """Ask for confirmation with the number of documents, then start the operation."""
    selection = parse_bulk_selection(request, "document")
    visible_spaces = access.admin_visible_space_ids(request.user.pk)
    rows = selection.limit(filters.documents(selection.filters, visible_spaces=visible_spaces).actionable_rows)
    count = rows.count()
    if not count:
        messages.error(request, _("First select the documents to delete."))
        return redirect("admin_documents")
    if not selection.is_confirmed(count):
        return render(request, "memory/confirm.html", _question(selection, count))
    create = partial(operations.create_deletion, Operation.Kind.FORGET_DOCUMENTS, rows, by=request.user.pk)
    return start_operation(request, create, list_page="admin_documents")


def _rows(request: PageRequest, found: list[Document], visible_spaces: access.SpaceIds) -> list[DocumentRow]:
    readable = access.readable_space_ids(request.user.pk)
    states = {state.id: state for state in document_statuses(found)}
    rows = []
    for document in found:
        state, hidden = states.get(document.pk), document.space_id not in visible_spaces
        rows.append(
            DocumentRow(
                id=document.pk,
                name="" if hidden else document.name,
                url=reverse("document", args=[document.pk]) if document.space_id in readable else "",
                size_text=filesizeformat(state.newest.size if state else 0)
                + (", " + _("name not shown.") if hidden else ""),
                who=str(document.owner),
                space_name=space_column(document.space, request),
                space_kind=document.space.kind,
                version=state.newest.number if state else None,
                state=state_text(state.newest) if state else _("Nothing of it is kept"),
                added_at=document.created_at,
                reveal_url=reverse("reveal", args=[document.space_id]) if hidden else "",
            )
        )
    return rows


def _question(selection: BulkSelection, count: int) -> dict[str, object]:
    question = ngettext("Delete this document?", "Delete %(count)s documents?", count)
    return {
        "section": "admin",
        "fields": selection.form_fields("document", count),
        "question": question % {"count": format_number(count)},
        "consequence": ngettext(
            "It is deleted with all versions, passages and originals. Nobody can recall or find it from now on.",
            "They are deleted with all versions, passages and originals. Nobody can recall or find them from now on.",
            count,
        ),
        "act": npgettext("of a list", "Delete it", "Delete %(count)s", count) % {"count": format_number(count)},
        "action": reverse("admin_forget_documents"),
        "back_url": f"{reverse('admin_documents')}?{selection.filters.urlencode()}",
    }

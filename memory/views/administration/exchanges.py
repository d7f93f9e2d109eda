"""List of all exchanges for administrators, with bulk forgetting and export."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, npgettext
from django.views.decorators.http import require_GET, require_POST

from memory import signals
from memory.administration import filters, operations
from memory.index import generations
from memory.models import Chunk, Document, EmbeddingJob, Exchange, Job, Operation
from memory.spaces import access
from memory.text import excerpt
from memory.utils.batching import iterate_by_pk
from memory.utils.formatting import format_number, source_label
from memory.utils.streaming import iterate_in_thread
from memory.views.administration.shared import (
    BulkSelection,
    active_reveal_rows,
    parse_bulk_selection,
    size_of,
    space_column,
    start_operation,
)
from memory.views.http import PageRequest, admin_required
from memory.views.paging import LongPaginator

_PAGE_SIZE = 50
_EXPORT_BATCH_SIZE = 200


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """One exchange; `text_shown` is empty if the administrator may not read it."""

    id: uuid.UUID
    text_shown: str
    size_text: str
    who: str
    space_name: str
    space_kind: str
    source: str
    said_at: datetime
    state: str
    reveal_url: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that follow each other: an exchange, or passages of a document, whose name is "" if it may not be read."""

    rows: list[ExchangeRow]
    name: str
    count_text: str

    @property
    def is_collapsed(self) -> bool:
        """Return whether the rows are shown once they are opened."""
        return len(self.rows) > 1


@admin_required
@require_GET
def exchanges(request: PageRequest) -> HttpResponse:
    """List the exchanges that match the filters, newest first."""
    visible_spaces = access.admin_visible_space_ids(request.user.pk)
    selection = filters.exchanges(request.GET, visible_spaces=visible_spaces)
    active_jobs = EmbeddingJob.objects.filter(generation=generations.active_generation())
    rows = selection.qs.select_related("owner", "space__owner")
    rows = rows.prefetch_related(Prefetch("embeddings", queryset=active_jobs, to_attr="active_jobs"))
    rows = rows.prefetch_related(Prefetch("chunks", queryset=Chunk.objects.select_related("version__document")))
    page = LongPaginator(rows, _PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "section": "admin",
        "tab": "exchanges",
        "selection": selection,
        "filters": request.GET.urlencode(),
        "page": page,
        "rows": list(page),
        "columns": 5,
        "groups": _row_groups(request, list(page), visible_spaces),
        "reveals": active_reveal_rows(request),
    }
    return render(request, "memory/admin_exchanges.html", context)


@admin_required
@require_POST
def forget(request: PageRequest) -> HttpResponse:
    """Ask for confirmation with the number of exchanges, then start the operation."""
    selection = parse_bulk_selection(request, "exchange")
    visible_spaces = access.admin_visible_space_ids(request.user.pk)
    rows = _selected(selection, visible_spaces)
    count = rows.count()
    if not count:
        messages.error(request, _("First select the exchanges to forget."))
        return redirect("admin_exchanges")
    if not selection.is_confirmed(count):
        return render(request, "memory/confirm.html", _question(selection, count))
    create = partial(operations.create_deletion, Operation.Kind.FORGET, rows, by=request.user.pk)
    return start_operation(request, create, list_page="admin_exchanges")


@admin_required
@require_POST
def export(request: PageRequest) -> HttpResponseBase:
    """Export the selection as JSON lines; texts only from spaces that the administrator may read."""
    selection = parse_bulk_selection(request, "exchange")
    visible_spaces = access.admin_visible_space_ids(request.user.pk)
    rows = _selected(selection, visible_spaces)
    count = rows.count()
    if not count:
        messages.error(request, _("First select the exchanges to export."))
        return redirect("admin_exchanges")
    signals.exchanges_exported.send(sender=None, by=request.user.pk, count=count)
    lines = _exported_lines(rows, visible_spaces, by=request.user.pk)
    response = StreamingHttpResponse(iterate_in_thread(lines), content_type="application/jsonl")
    name = f"exchanges {timezone.now():%Y-%m-%d}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _selected(selection: BulkSelection, visible_spaces: access.SpaceIds) -> QuerySet[Exchange]:
    rows: QuerySet[Exchange] = filters.exchanges(selection.filters, visible_spaces=visible_spaces).actionable_rows
    return selection.limit(rows)


def _exported_lines(rows: QuerySet[Exchange], visible_spaces: access.SpaceIds, *, by: uuid.UUID) -> Iterator[bytes]:
    """Yield the rows in batches while the administrator sees all these spaces.

    Raises PermissionDenied, which breaks the download off instead of ending it as if it was complete.
    """
    for page in iterate_by_pk(rows.select_related("owner", "space"), _EXPORT_BATCH_SIZE):
        if not (access.is_administrator(by) and visible_spaces <= access.admin_visible_space_ids(by)):
            raise PermissionDenied
        lines = (
            json.dumps(_exported_fields(exchange, visible_spaces), ensure_ascii=False, default=str) for exchange in page
        )
        yield "".join(f"{line}\n" for line in lines).encode()


def _exported_fields(exchange: Exchange, visible_spaces: access.SpaceIds) -> dict[str, object]:
    names = ("id", "thread_id", "session_id", "source", "timestamp", "created_at", "size")
    fields = {name: getattr(exchange, name) for name in names}
    fields |= {"who": str(exchange.owner), "space": exchange.space.name or exchange.space.kind}
    if exchange.space_id not in visible_spaces:
        return fields | {"is_shown": False}
    texts = ("user_message", "assistant_message", "source_file", "metadata")
    return fields | {"is_shown": True} | {name: getattr(exchange, name) for name in texts}


def _row_groups(request: PageRequest, exchanges: list[Exchange], visible_spaces: access.SpaceIds) -> list[RowGroup]:
    groups = []
    for _key, grouped in groupby(exchanges, _group_key):
        found = list(grouped)
        document = _document_of(found[0])
        rows = [_build_row(request, exchange, visible_spaces) for exchange in found]
        count_text = ngettext("%(count)s passage", "%(count)s passages", len(rows)) % {"count": len(rows)}
        name = document.name if document is not None and document.space_id in visible_spaces else ""
        groups.append(RowGroup(sorted(rows, key=lambda row: row.index), name, count_text))
    return groups


def _group_key(exchange: Exchange) -> uuid.UUID:
    document = _document_of(exchange)
    return document.pk if document else exchange.pk


def _document_of(exchange: Exchange) -> Document | None:
    """Return the document of a passage, from the prefetched chunks."""
    chunks = list(exchange.chunks.all())
    return chunks[0].version.document if chunks else None


def _build_row(request: PageRequest, exchange: Exchange, visible_spaces: access.SpaceIds) -> ExchangeRow:
    hidden = exchange.space_id not in visible_spaces
    names = {Job.State.PENDING: _("waiting"), Job.State.DONE: "remembered", Job.State.FAILED: _("failed")}
    states = [job.state for job in getattr(exchange, "active_jobs", [])]
    return ExchangeRow(
        id=exchange.id,
        text_shown="" if hidden else excerpt(exchange.user_message, 120),
        size_text=size_of(exchange) + (", " + _("not shown.") if hidden else ""),
        who=str(exchange.owner),
        space_name=space_column(exchange.space, request),
        space_kind=exchange.space.kind,
        source=source_label(exchange.source),
        said_at=exchange.timestamp,
        state=names[Job.State(states[0])] if states else _("not in the index"),
        reveal_url=reverse("reveal", args=[exchange.space_id]) if hidden else "",
        index=exchange.chunk_index or 0,
    )


def _question(selection: BulkSelection, count: int) -> dict[str, object]:
    question = npgettext("of a list", "Forget this exchange?", "Forget %(count)s exchanges?", count)
    consequence = npgettext(
        "of a list",
        "Nobody can recall or find it from now on, not even after a new import. "
        "A message stays in its thread and a passage in its document's original file; a note is deleted.",
        "Nobody can recall or find them from now on, not even after a new import. "
        "Messages stay in their threads and passages in their documents' original files; notes are deleted.",
        count,
    )
    act = npgettext("of a list", "Forget it", "Forget %(count)s", count)
    return {
        "section": "admin",
        "fields": selection.form_fields("exchange", count),
        "question": question % {"count": format_number(count)},
        "consequence": consequence,
        "act": act % {"count": format_number(count)},
        "action": reverse("admin_forget"),
        "back_url": f"{reverse('admin_exchanges')}?{selection.filters.urlencode()}",
    }

"""Pages of long-running operations: start, progress and receipt."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.administration import operations
from memory.models import Job, Operation
from memory.utils.formatting import format_number
from memory.views.administration.shared import start_operation
from memory.views.http import PageRequest, admin_required
from memory.views.paging import LongPaginator

Kind = Operation.Kind
_PAGE_SIZE = 20
# Operations with a button on this page; the others start from a selection.
_STARTABLE = {
    "reconcile": (Kind.RECONCILE, {"is_dry_run": False}),
    "count": (Kind.RECONCILE, {"is_dry_run": True}),
    "backfill": (Kind.BACKFILL, {}),
    "erase": (Kind.ERASE, {}),
}
_FORGETTING = (Kind.FORGET, Kind.FORGET_DOCUMENTS, Kind.RETENTION)
# Labels of the counts that operations report.
_COUNT_LABELS = {
    "exchanges": gettext_noop("Exchanges"),
    "documents": gettext_noop("Documents"),
    "embedded": gettext_noop("Embedded"),
    "vectors": gettext_noop("Vectors"),
    "cached embeddings": gettext_noop("Cached embeddings"),
    "forgotten exchanges": gettext_noop("Forgotten exchanges"),
}
_FOUND_LABELS = {
    "queued": gettext_noop("Queued to be embedded"),
    "vectors_removed": gettext_noop("Orphaned vectors removed"),
    "collections_dropped": gettext_noop("Orphaned collections dropped"),
    "words_written": gettext_noop("Keyword entries added"),
    "words_removed": gettext_noop("Stale keyword entries removed"),
    "cached_removed": gettext_noop("Unused cached embeddings removed"),
    "files_removed": gettext_noop("Orphaned files removed"),
}


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation. `is_watched`: not all of it is done yet. `bar`: progress from 0 to 20, None if unknown or finished."""

    id: uuid.UUID
    title: str
    created_by: str
    created_at: datetime
    state_text: str
    has_failed: bool
    is_watched: bool
    error: str
    bar: int | None
    lines: list[dict[str, object]]
    url: str
    cancel_url: str
    retry_url: str


@admin_required
@require_http_methods(["GET", "POST"])
def all_operations(request: PageRequest) -> HttpResponse:
    """List the latest operations; a POST starts one."""
    if request.method == "POST":
        return _start(request)
    page = LongPaginator(operations.list_operations(), _PAGE_SIZE).get_page(request.GET.get("page"))
    rows = [_build_row(operation) for operation in page]
    context = {"section": "admin", "tab": "operations", "page": page, "rows": rows}
    return render(request, "memory/admin_operations.html", context)


@admin_required
@require_GET
def operation(request: PageRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Show the progress and receipt; htmx requests get only these, and poll them while the operation runs."""
    row = _build_row(operations.get_operation(operation_id))
    template = "memory/_operation.html" if request.htmx else "memory/admin_operation.html"
    return render(request, template, {"section": "admin", "tab": "operations", "row": row})


@admin_required
@require_POST
def cancel(request: PageRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Cancel an operation; what it has done stays."""
    if not operations.cancel(operations.get_operation(operation_id)):
        messages.error(request, _("Already finished."))
    return redirect("admin_operation", operation_id)


@admin_required
@require_POST
def retry(request: PageRequest, operation_id: uuid.UUID) -> HttpResponse:
    """Retry a failed operation."""
    if not operations.retry(operations.get_operation(operation_id)):
        messages.error(request, _("This task has not failed."))
    return redirect("admin_operation", operation_id)


def _start(request: PageRequest) -> HttpResponse:
    kind, parameters = _STARTABLE.get(request.POST.get("kind", ""), (None, {}))
    if kind is None:
        messages.error(request, _("Choose what is to be done."))
        return redirect("admin_operations")
    create = partial(operations.create_operation, kind, by=request.user.pk, parameters=parameters)
    return start_operation(request, create, list_page="admin_operations")


def _build_row(operation: Operation) -> OperationRow:
    args = [operation.pk]
    under_way = operation.is_under_way
    is_forgetting = operation.kind in _FORGETTING
    failed = operations.count_failed_erasures(operation) if is_forgetting else 0
    pending = operations.count_pending_erasures(operation) - failed if is_forgetting else 0
    title = str(Kind(operation.kind).label)
    if operation.parameters.get("is_dry_run"):
        title = _("%(what)s, count only") % {"what": title}
    return OperationRow(
        id=operation.pk,
        title=title,
        created_by=str(operation.created_by),
        created_at=operation.created_at,
        state_text=_state(operation),
        has_failed=operation.state == Job.State.FAILED,
        is_watched=under_way or pending > 0,
        error=operation.error,
        bar=round(20 * min(1, operation.processed / operation.total)) if under_way and operation.total else None,
        lines=list(_receipt_lines(operation, pending, failed)),
        url=reverse("admin_operation", args=args),
        cancel_url=reverse("cancel_operation", args=args) if under_way else "",
        retry_url=reverse("retry_operation", args=args) if operation.state == Job.State.FAILED else "",
    )


def _state(operation: Operation) -> str:
    if operation.cancelled_at is not None:
        return _("Cancelled; what was done stays done")
    if operation.state == Job.State.FAILED:
        return _("Failed")
    if operation.state == Job.State.DONE:
        return _("Done")
    if operation.total:
        return _("%(done)s of %(total)s") % {
            "done": format_number(operation.processed),
            "total": format_number(operation.total),
        }
    if not operation.processed:
        return _("Queued")
    return _("%(count)s processed") % {"count": format_number(operation.processed)}


def _receipt_lines(operation: Operation, pending: int, failed: int) -> Iterator[dict[str, object]]:
    """Yield the lines of the receipt: counts, and the progress of erasure."""
    for name, count in operation.counts.items():
        yield {"label": _(_COUNT_LABELS.get(name, name.capitalize())), "figure": format_number(count)}
    for name, count in operation.parameters.get("found", {}).items():
        yield {"label": _(_FOUND_LABELS.get(name, name)), "figure": format_number(count)}
    if operation.kind in _FORGETTING and operation.processed:
        end = operation.finished_at
        if end is not None:
            yield {"label": _("Removed from search and answers"), "at": end}
        in_progress = _("%(count)s in progress") % {"count": format_number(pending)}
        if pending or not failed:
            yield {"label": _("Removed and verified"), "figure": in_progress if pending else _("all")}
        if failed:
            yield {"label": _("Not removed: see the failed jobs"), "figure": format_number(failed)}
        if end is not None:
            by = end + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
            yield {"label": _("Purged from disk by"), "at": by}

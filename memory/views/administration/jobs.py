"""Page of failed and retried jobs, with their errors and a retry button."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from memory import jobs as job_rows
from memory.documents import publishing
from memory.index.indexing import retry_failed
from memory.models import DocumentVersion, EmbeddingJob, ErasureJob, Job
from memory.utils.formatting import format_number
from memory.views.administration.shared import size_of
from memory.views.http import PageRequest, admin_required

_MAX_ROWS = 50


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of the list."""

    id: str
    kind: str
    description: str
    error: str
    attempts: int
    since: datetime


@admin_required
@require_GET
def jobs(request: PageRequest) -> HttpResponse:
    """List the jobs of each kind that have an error."""
    found = {kind: rows for kind, (rows, _retry) in _kinds().items()}
    context = {
        "section": "admin",
        "tab": "jobs",
        "rows": [_build_row(kind, row) for kind, rows in found.items() for row in rows.order_by("pk")[:_MAX_ROWS]],
        "retry_url": reverse("admin_retry"),
        "failed": sum(rows.filter(state=Job.State.FAILED).count() for rows in found.values()),
    }
    return render(request, "memory/admin_jobs.html", context)


@admin_required
@require_POST
def retry(request: PageRequest) -> HttpResponse:
    """Retry the given failed job, or all."""
    given_kind, _colon, key = request.POST.get("job", "").partition(":")
    count = 0
    try:
        for kind, (rows, retry_rows) in _kinds().items():
            if given_kind in ("", kind):
                count += retry_rows(rows.filter(pk=key) if key else rows)
    except (ValueError, ValidationError):  # not a valid key
        count = 0
    message = _("%(count)s tried again.") if count else _("No job had failed.")
    messages.success(request, message % {"count": format_number(count)})
    return redirect("admin_jobs")


def _kinds() -> dict[str, tuple[QuerySet[Any], Callable[[QuerySet[Any]], int]]]:
    """Return for each kind the jobs with errors, and the function that retries them."""
    has_error = ~Q(error="") & ~Q(state=Job.State.DONE)
    embeddings = EmbeddingJob.workable().filter(has_error).select_related("exchange__owner")
    erasures = ErasureJob.workable().filter(has_error).select_related("exchange__owner")
    versions = DocumentVersion.objects.filter(stage=DocumentVersion.Stage.FAILED).select_related("document__owner")
    return {
        "embedding": (embeddings, retry_failed),
        "erasure": (erasures, _retry_erasures),
        "document": (versions, _retry_extraction),
        **{name: (kind.rows(), kind.retry) for name, kind in job_rows.FAILED_KINDS.items()},
    }


def _retry_erasures(rows: QuerySet[ErasureJob]) -> int:
    count = job_rows.requeue(rows.filter(state=Job.State.FAILED))
    job_rows.wake_worker_on_commit("erase_forgotten")
    return count


def _retry_extraction(rows: QuerySet[DocumentVersion]) -> int:
    versions = list(rows)
    for version in versions:
        publishing.retry_document(version)
    return len(versions)


def _build_row(kind: str, row: Any) -> JobRow:
    if (listed := job_rows.FAILED_KINDS.get(kind)) is not None:
        description, since = listed.describe(row)
        return JobRow(f"{kind}:{row.pk}", _("failed"), description, row.error, row.attempt, since)
    if isinstance(row, DocumentVersion):
        description = _("version %(number)s of a document of %(name)s, %(size)s") % {
            "number": row.number,
            "name": row.document.owner,
            "size": filesizeformat(row.size),
        }
        return JobRow(f"{kind}:{row.pk}", _("document, failed"), description, row.error, row.attempt, row.created_at)
    description = _("%(source)s of %(name)s, %(size)s") % {
        "source": row.exchange.source,
        "name": row.exchange.owner,
        "size": size_of(row.exchange),
    }
    state = _("failed") if row.state == Job.State.FAILED else _("will be tried again")
    work = _("embedding") if kind == "embedding" else _("erasure")
    return JobRow(f"{kind}:{row.pk}", f"{work}, {state}", description, row.error, row.attempt, row.exchange.created_at)

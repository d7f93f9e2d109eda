"""The page where a person requests and downloads an archive of their own data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from cato_web.accounts.export import jobs
from cato_web.accounts.export.responses import archive_response
from cato_web.accounts.models import ExportJob
from cato_web.accounts.views import AuthenticatedRequest
from memory.api import Job, format_number


@dataclass(frozen=True, slots=True)
class ExportRow:
    """An export; `bar` is its progress from 0 to 20, None if unknown or not running."""

    at: datetime
    state_text: str
    bar: int | None
    error: str
    download_url: str
    expires_at: datetime | None
    is_under_way: bool
    has_failed: bool


@require_http_methods(["GET", "POST"])
def export_page(request: AuthenticatedRequest) -> HttpResponse:
    """Show the person's export; POST requests one."""
    if request.method == "POST":
        jobs.request_export(request.user)
        return redirect("export_account")
    export = jobs.find_export(request.user)
    context = {"section": "settings", "row": _row_of(export) if export else None, "days": jobs.EXPIRES_AFTER.days}
    return render(request, "people/export.html", context)


@require_GET
def export_row(request: AuthenticatedRequest) -> HttpResponse:
    """Return the row of the export, which the page polls; its end is announced to screen readers once."""
    export = jobs.find_export(request.user)
    row = _row_of(export) if export else None
    return render(request, "people/_export.html", {"row": row, "says_so": row is not None and not row.is_under_way})


@require_GET
def download(request: AuthenticatedRequest) -> HttpResponseBase:
    """Return the archive, if nothing in it was forgotten since."""
    export = jobs.find_export(request.user)
    if export is None or not export.file:
        messages.error(request, _("This export cannot be downloaded any more. Export again."))
        return redirect("export_account")
    return archive_response(export)


def _row_of(export: ExportJob) -> ExportRow:
    is_under_way = export.state == Job.State.PENDING
    return ExportRow(
        at=export.finished_at or export.requested_at,
        state_text=_state_text(export),
        bar=round(20 * min(export.read / export.total, 1)) if is_under_way and export.total else None,
        error=export.error,
        download_url=reverse("download_export") if export.file else "",
        expires_at=export.finished_at + jobs.EXPIRES_AFTER if export.file and export.finished_at else None,
        is_under_way=is_under_way,
        has_failed=export.state == Job.State.FAILED,
    )


def _state_text(export: ExportJob) -> str:
    if export.is_outdated:
        return _("Something in it was forgotten or changed, so it was deleted. Export again.")
    if export.state == Job.State.FAILED:
        return _("The export failed. Export again.")
    if export.state == Job.State.DONE:
        return _("Ready: %(size)s") % {"size": filesizeformat(export.size)}
    if export.error:
        return _("Interrupted; will retry")
    if not export.total:
        return _("Preparing your export")
    text = _("Preparing your export: %(read)s of %(total)s messages, memories and files")
    return text % {"read": format_number(export.read), "total": format_number(export.total)}

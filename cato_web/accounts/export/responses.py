"""Responses with an archive: one that was prepared, and one that is produced while it is sent."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.files import File
from django.http import StreamingHttpResponse
from django.utils import timezone

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, ExportJob
from memory.api import iterate_in_thread


def archive_response(export: ExportJob) -> StreamingHttpResponse:
    """Return the archive of an export that has a file, and record the download."""
    services.record_audit(export.person, AuditEntry.Action.ACCOUNT_EXPORTED, str(export.person_id))
    response = zip_response(_read_file(export.file.open("rb")))
    response["Content-Length"] = str(export.size)
    return response


def zip_response(chunks: Iterator[bytes]) -> StreamingHttpResponse:
    """Return an archive, sent in chunks as they are produced."""
    response = StreamingHttpResponse(iterate_in_thread(chunks), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="cato-{timezone.now():%Y-%m-%d}.zip"'
    return response


def _read_file(file: File[bytes]) -> Iterator[bytes]:
    with file:
        yield from file.chunks()

"""Responses with an archive: one that was prepared, and one that is produced while it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.files import File
from django.http import StreamingHttpResponse
from django.utils import timezone

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, ExportJob


def archive_response(export: ExportJob) -> StreamingHttpResponse:
    """Return the archive of an export that has a file, and record the download."""
    services.record_audit(export.person, AuditEntry.Action.ACCOUNT_EXPORTED, str(export.person_id))
    response = zip_response(_read_file(export.file.open("rb")))
    response["Content-Length"] = str(export.size)
    return response


def zip_response(chunks: Iterator[bytes]) -> StreamingHttpResponse:
    """Return an archive, sent in chunks as they are produced."""
    response = StreamingHttpResponse(_iterate_in_thread(chunks), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="cato-{timezone.now():%Y-%m-%d}.zip"'
    return response


def _read_file(file: File[bytes]) -> Iterator[bytes]:
    with file:
        yield from file.chunks()


async def _iterate_in_thread(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks, each produced in a thread after the previous one was sent."""
    next_chunk = sync_to_async(lambda: next(chunks, None))
    while (chunk := await next_chunk()) is not None:
        yield chunk

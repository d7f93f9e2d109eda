"""Send the stored original of a document version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import PurePosixPath

from asgiref.sync import sync_to_async
from django.core.files import File
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from memory.errors import NotFoundError
from memory.models import Document

_READ_BYTES = 65_536


def stream_original(found: Document, number: int) -> StreamingHttpResponse:
    """Return the original of one version. Raises NotFoundError if it was deleted, or is not kept any more."""
    version = found.versions.present().filter(number=number).exclude(original="").first()
    if version is None:
        raise NotFoundError(_("This version is not kept any more."))
    response = StreamingHttpResponse(_chunks(version.original), content_type="application/octet-stream")
    response["Content-Length"] = str(version.size)
    name = PurePosixPath(found.name).name
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    response["Cache-Control"] = "private, no-store"
    confine_download(response)
    return response


def confine_download(response: HttpResponseBase) -> None:
    """Add headers that stop an uploaded file from running scripts, loading resources or being embedded elsewhere."""
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cross-Origin-Resource-Policy"] = "same-origin"


async def _chunks(file: File[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of a stored file, read in a thread."""
    await sync_to_async(file.open)("rb")
    try:
        while chunk := await sync_to_async(file.read)(_READ_BYTES):
            yield chunk
    finally:
        await sync_to_async(file.close)()

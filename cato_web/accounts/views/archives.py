"""Everything that is kept of a person as a download, written as it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils import timezone

from cato_web.accounts.export import archive
from cato_web.accounts.models import User


def zip_of(person: User, *, by: User) -> StreamingHttpResponse:
    """Return the archive of this person for `by`; the caller has checked that they may have it."""
    response = StreamingHttpResponse(_in_turn(archive.stream_zip(person, by=by)), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="cato-{timezone.now():%Y-%m-%d}.zip"'
    return response


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made beside the loop when the one before it was sent."""
    make = sync_to_async(lambda: next(pieces, None))
    while (piece := await make()) is not None:
        yield piece

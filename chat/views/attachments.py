"""Upload and download of attachments of messages."""

from __future__ import annotations

import uuid

from django.http import FileResponse, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from chat import access
from chat.attachments import store_attachment
from chat.rows.attachments import ComposerChip, attachment_rows, composer_chips, read_progress
from memory.api import InvalidInputError, NotFoundError, PageRequest, confine_download


@require_POST
def attachments(request: PageRequest) -> HttpResponse:
    """Store uploaded files and return a chip for each."""
    chips = []
    for file in request.FILES.getlist("attachments"):
        try:
            chips += composer_chips([store_attachment(file, owner_id=request.user.pk)])
        except InvalidInputError as error:
            # The chip shows the name before the reason.
            name = file.name or ""
            reason = str(error).removeprefix(name).removeprefix(":").strip()
            chips.append(ComposerChip(name=name, error=reason))
    return render(request, "chat/_attachment_chips.html", {"chips": chips})


@require_GET
def attachment_progress(request: PageRequest, attachment_id: uuid.UUID) -> HttpResponse:
    """Return the detail of an attached document's chip; pages poll it until the document is in memory."""
    attachment = access.get_attachment(request.user.pk, attachment_id)
    (row,) = attachment_rows([attachment], read_progress([attachment]))
    return render(request, "chat/_attachment_detail.html", {"attachment": row})


@require_GET
def attachment(request: PageRequest, attachment_id: uuid.UUID) -> FileResponse:
    """Return the file: an image to be shown, any other file to be downloaded."""
    attachment = access.get_attachment(request.user.pk, attachment_id)
    try:
        file = attachment.file.open()
    except FileNotFoundError as error:
        raise NotFoundError from error
    if attachment.is_image:
        response = FileResponse(file, content_type=attachment.media_type)
        # An image never changes, and a person who loses access has already seen it.
        response["Cache-Control"] = "private, max-age=86400, immutable"
    else:
        response = FileResponse(
            file, content_type="application/octet-stream", as_attachment=True, filename=attachment.name
        )
        response["Cache-Control"] = "private, no-store"
    confine_download(response)
    return response

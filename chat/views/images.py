"""Upload and download of images of messages."""

from __future__ import annotations

import uuid

from django.http import FileResponse, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from chat import access
from chat.errors import InvalidMessageError
from chat.images import store_image
from memory.api import NotFoundError, PageRequest, confine_download


@require_POST
def images(request: PageRequest) -> HttpResponse:
    """Store uploaded images and return a chip for each."""
    chips: list[dict[str, object]] = []
    for file in request.FILES.getlist("images"):
        try:
            chips.append({"image": store_image(file, owner_id=request.user.pk)})
        except InvalidMessageError as error:
            chips.append({"error": str(error)})
    return render(request, "chat/_image_chips.html", {"chips": chips})


@require_GET
def image(request: PageRequest, image_id: uuid.UUID) -> FileResponse:
    """Return the image file."""
    image = access.get_image(request.user.pk, image_id)
    try:
        file = image.file.open()
    except FileNotFoundError as error:
        raise NotFoundError from error
    response = FileResponse(file, content_type=image.media_type)
    # An image never changes, and a person who loses access has already seen it.
    response["Cache-Control"] = "private, max-age=86400, immutable"
    confine_download(response)
    return response

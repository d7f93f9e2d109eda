"""Images of messages: stored before the message is sent, and deleted with the last turn that has them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.conf import settings
from django.core.files import File
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from chat.models import IMAGES, Image, Turn
from memory import api as memory
from memory.api import clean_text, format_number

# Detected by their first bytes, as is WebP. Models accept these four types, and browsers show them without running code.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_MAX_NAME_LENGTH = 200
_UNSENT_MAX_AGE = timedelta(days=2)
_BATCH_SIZE = 200


def store_image(file: File[bytes], *, owner_id: uuid.UUID) -> Image:
    """Store an uploaded image. Raises InvalidMessageError if it is not an image or too large."""
    name = clean_text(file.name or "").strip()[-_MAX_NAME_LENGTH:] or _("Picture")
    limit = settings.CATO.chat.max_image_mb
    if file.size > limit * 1_000_000:
        sentence = _("%(name)s has %(size)s MB; a picture may have %(most)s (chat.max_image_mb).")
        raise InvalidMessageError(
            sentence % {"name": name, "size": format_number(file.size / 1_000_000), "most": limit}
        )
    media_type = _media_type(file)
    if not media_type:
        raise InvalidMessageError(_("%(name)s is not a supported image (PNG, JPEG, GIF, WebP).") % {"name": name})
    image = Image(owner_id=owner_id, name=name, media_type=media_type)
    image.file.save(name, file, save=False)
    with memory.delete_file_on_rollback(str(image.file.name)):
        image.save(force_insert=True)
    return image


def claim_images(ids: Sequence[uuid.UUID], *, owner_id: uuid.UUID) -> tuple[Image, ...]:
    """Return this person's images with these ids. Raises InvalidMessageError if they are too many or one is missing."""
    limit = settings.CATO.chat.max_images
    if len(ids) > limit:
        sentence = _("At most %(most)s pictures go with one message, not %(count)s (chat.max_images).")
        raise InvalidMessageError(sentence % {"most": limit, "count": len(ids)})
    images = tuple(Image.objects.filter(id__in=ids, owner_id=owner_id)) if ids else ()
    if len(images) != len(set(ids)):
        raise InvalidMessageError(_("An image has expired. Remove it and attach it again."))
    return images


def delete_unreferenced(images: Iterable[Image]) -> int:
    """Delete those of the images that no turn has, with their files; return their number."""
    unreferenced = [image for image in images if not image.turns.exists()]
    for image in unreferenced:
        memory.delete_after_commit(image.file.name)
        image.delete()
    return len(unreferenced)


def delete_unsent_images() -> int:
    """Delete a batch of images that were not sent within two days; return their number."""
    unsent = Image.objects.filter(turns=None, created_at__lt=timezone.now() - _UNSENT_MAX_AGE)
    return delete_unreferenced(unsent[:_BATCH_SIZE])


def delete_orphaned_images(*, dry_run: bool = False) -> int:
    """Delete stored files to which no image refers; return their number."""
    return memory.delete_orphaned_files(Image, "file", folder=IMAGES, dry_run=dry_run)


def images_of(turns: Iterable[Turn]) -> list[Image]:
    """Return the images of these turns."""
    return list(Image.objects.filter(turns__in=[turn.id for turn in turns]).distinct())


def _media_type(file: File[bytes]) -> str:
    head = file.read(12)
    file.seek(0)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES.items() if head.startswith(signature)), "")

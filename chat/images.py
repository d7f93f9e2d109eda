"""Pictures with messages: kept before they are sent, shown to the model, and gone with the last turn that has them."""

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

# By their first bytes, whatever their names say; these four are what models take and browsers show without acting.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
MEDIA_TYPES = (*_SIGNATURES.values(), "image/webp")
_LONGEST_NAME = 200
_UNSENT_FOR = timedelta(days=2)
_TOGETHER = 200


def store_image(file: File[bytes], *, owner_id: uuid.UUID) -> Image:
    """Keep a picture that is about to be sent. Raises InvalidMessageError for what is none, or too large."""
    name = clean_text(file.name or "").strip()[-_LONGEST_NAME:] or _("Picture")
    most = settings.CATO.chat.max_image_mb
    if file.size > most * 1_000_000:
        sentence = _("%(name)s has %(size)s MB; a picture may have %(most)s (chat.max_image_mb).")
        raise InvalidMessageError(sentence % {"name": name, "size": format_number(file.size / 1_000_000), "most": most})
    media_type = _media_type(file)
    if not media_type:
        raise InvalidMessageError(_("%(name)s is not a supported image (PNG, JPEG, GIF, WebP).") % {"name": name})
    image = Image(owner_id=owner_id, name=name, media_type=media_type)
    image.file.save(name, file, save=False)
    with memory.delete_file_on_rollback(str(image.file.name)):
        image.save(force_insert=True)
    return image


def claim_images(ids: Sequence[uuid.UUID], *, owner_id: uuid.UUID) -> list[Image]:
    """One's own pictures with these ids, to go with a message. Raises InvalidMessageError for too many, and where one is gone."""
    most = settings.CATO.chat.max_images
    if len(ids) > most:
        sentence = _("At most %(most)s pictures go with one message, not %(count)s (chat.max_images).")
        raise InvalidMessageError(sentence % {"most": most, "count": len(ids)})
    images = list(Image.objects.filter(id__in=ids, owner_id=owner_id))
    if len(images) != len(set(ids)):
        raise InvalidMessageError(_("An image has expired. Remove it and attach it again."))
    return images


def delete_unreferenced(images: Iterable[Image]) -> int:
    """Remove those that no turn has any more, with their files; returns how many."""
    lone = [image for image in images if not image.turns.exists()]
    for image in lone:
        memory.delete_after_commit(image.file.name)
        image.delete()
    return len(lone)


def delete_unsent_images() -> int:
    """Remove what was kept and never sent; returns how many. Repeatable."""
    old = Image.objects.filter(turns=None, created_at__lt=timezone.now() - _UNSENT_FOR)
    return delete_unreferenced(old[:_TOGETHER])


def delete_orphaned_images(*, dry_run: bool = False) -> int:
    """Remove stored pictures that no row names; returns how many."""
    return memory.delete_orphaned_files(Image, "file", folder=IMAGES, dry_run=dry_run)


def images_of(turns: Iterable[Turn]) -> list[Image]:
    """Every picture of these turns."""
    return list(Image.objects.filter(turns__in=[turn.id for turn in turns]).distinct())


def _media_type(file: File[bytes]) -> str:
    head = file.read(12)
    file.seek(0)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES.items() if head.startswith(signature)), "")

"""Pictures with messages: kept before they are sent, shown to the model, and gone with the last turn that has them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from chat.errors import Refused
from chat.models import Image, Turn
from memory.text import clean_text

# By their first bytes, whatever their names say; these four are what models take and browsers show without acting.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
MEDIA_TYPES = (*_SIGNATURES.values(), "image/webp")
_FOLDER = "images"
_LONGEST_NAME = 200
_UNSENT_FOR = timedelta(days=2)
_YOUNG = timedelta(hours=1)
_TOGETHER = 200


def receive(file: File[bytes], *, owner_id: uuid.UUID) -> Image:
    """Keep a picture that is about to be sent. Raises Refused for what is none, or too large."""
    name = clean_text(file.name or "").strip()[-_LONGEST_NAME:] or "Picture"
    most = settings.CATO.chat.max_image_mb
    if file.size > most * 1_000_000:
        raise Refused(f"{name} has {file.size / 1_000_000:,.0f} MB; a picture may have {most} (chat.max_image_mb).")
    media_type = _media_type(file)
    if not media_type:
        raise Refused(f"{name} is no picture that models take: PNG, JPEG, GIF or WebP.")
    image = Image(owner_id=owner_id, name=name, media_type=media_type)
    image.file = file
    image.save()
    return image


def sent_with(ids: Sequence[uuid.UUID], *, owner_id: uuid.UUID) -> list[Image]:
    """One's own pictures with these ids, to go with a message. Raises Refused for too many, and where one is gone."""
    most = settings.CATO.chat.max_images
    if len(ids) > most:
        raise Refused(f"At most {most} pictures go with one message, not {len(ids)} (chat.max_images).")
    images = list(Image.objects.filter(id__in=ids, owner_id=owner_id))
    if len(images) != len(set(ids)):
        raise Refused("A picture is not kept any more. Take it away and add it again.")
    return images


def remove_without_turn(images: Iterable[Image]) -> int:
    """Remove those that no turn has any more, with their files; returns how many."""
    lone = [image for image in images if not image.turns.exists()]
    for image in lone:
        _delete_after_commit(str(image.file.name))
        image.delete()
    return len(lone)


def tidy_images() -> int:
    """Remove what was kept and never sent; returns how many. Repeatable."""
    old = Image.objects.filter(turns=None, created_at__lt=timezone.now() - _UNSENT_FOR)
    return remove_without_turn(old[:_TOGETHER])


def remove_unnamed_images(*, dry_run: bool = False) -> int:
    """Remove files that no row names, such as a crash leaves between the two; young ones are left alone."""
    if not default_storage.exists(_FOLDER):
        return 0
    removed, long_ago = 0, timezone.now() - _YOUNG
    for name in default_storage.listdir(_FOLDER)[1]:
        path = f"{_FOLDER}/{name}"
        # A picture that was removed a moment ago has taken its file along.
        with suppress(FileNotFoundError):
            if Image.objects.filter(file=path).exists() or default_storage.get_modified_time(path) > long_ago:
                continue
            removed += 1
            if not dry_run:
                default_storage.delete(path)
    return removed


def images_of(turns: Iterable[Turn]) -> list[Image]:
    """Every picture of these turns."""
    return list(Image.objects.filter(turns__in=[turn.id for turn in turns]).distinct())


def _media_type(file: File[bytes]) -> str:
    head = file.read(12)
    file.seek(0)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES.items() if head.startswith(signature)), "")


def _delete_after_commit(name: str) -> None:
    transaction.on_commit(lambda: default_storage.delete(name))

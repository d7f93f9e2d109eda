"""Receiving a file: its bytes are safe, and a row says what is to be done with them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from dataclasses import dataclass
from typing import BinaryIO, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import files, jobs, nudge
from memory.errors import BadQuery, CannotRead, StoreDisabled
from memory.models import Document, DocumentVersion, Space
from memory.models.documents import place_of
from memory.readers import kinds
from memory.services.documents.describing import check_description, describe
from memory.services.exchanges import Metadata
from memory.shown import number, sentence
from memory.text import clean_text

Stage = DocumentVersion.Stage
_LONGEST_NAME = 255
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Received:
    """What became of an upload; `is_known`: these very bytes are this document's present version already."""

    version: DocumentVersion
    is_known: bool


def receive(
    file: File[bytes],
    *,
    name: str,
    space: Space,
    owner_id: uuid.UUID,
    source: str,
    metadata: Metadata | None = None,
) -> Received:
    """Keep a file as the next version of the document called `name` in `space`; a worker reads it after the commit.

    `metadata` takes the place of the document's; None leaves it. Raises BadQuery for a file that cannot be taken,
    StoreDisabled.
    """
    if not settings.CATO.vector_store.enabled:
        raise StoreDisabled(_("Nothing is remembered: the vector store is disabled (vector_store.enabled)."))
    name = clean_name(name)
    check_size(name, file.size)
    if metadata is not None:
        check_description(metadata)
    kind = _kind(file, name)
    digest = _digest(file)
    kept = default_storage.save(place_of(DocumentVersion(), name), file)
    with files.kept_with_its_row(kept), transaction.atomic():
        document = _document(name, space, owner_id, source)
        if metadata is not None:
            describe(document, metadata)
        known = _same_bytes(document, digest)
        version = known or _next_version(document, kept, file.size, digest, kind, owner_id)
        nudge.after_commit("read_documents")
    if known:
        default_storage.delete(kept)
    return Received(version, is_known=known is not None)


def check_size(name: str, size: int) -> None:
    """Raises BadQuery for an empty file and one above `documents.max_file_mb`."""
    most = settings.CATO.documents.max_file_mb
    if not size:
        raise BadQuery(_("%(name)s is empty.") % {"name": name})
    if size > most * 1_000_000:
        said = _("%(name)s has %(size)s MB; a file may have %(most)s (documents.max_file_mb).")
        raise BadQuery(said % {"name": name, "size": number(size / 1_000_000), "most": most})


def clean_name(name: str) -> str:
    """A file's name as a document's identity: without control characters, its folders joined by slashes."""
    parts = clean_text(unicodedata.normalize("NFC", name)).replace("\\", "/").split("/")
    seen = (_UNSEEN.sub(" ", part).strip() for part in parts)
    cleaned = "/".join(part for part in seen if part not in ("", ".", ".."))
    return cleaned[-_LONGEST_NAME:] or _("Without a name")


def _kind(file: File[bytes], name: str) -> str:
    try:
        return kinds.kind_of(cast(BinaryIO, file), name)
    except CannotRead as error:
        raise BadQuery(f"{name}: {sentence(error)}") from error


def _digest(file: File[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def _document(name: str, space: Space, owner_id: uuid.UUID, source: str) -> Document:
    """The document of this name, locked; made where there is none."""
    document, _is_new = Document.objects.select_for_update().get_or_create(
        space=space, name=name, forgotten_at=None, defaults={"owner_id": owner_id, "source": source}
    )
    return document


def _same_bytes(document: Document, digest: str) -> DocumentVersion | None:
    """The newest version, where it has these bytes and serves, or is on its way; a failed one is tried again."""
    newest = document.versions.exclude(stage__in=[Stage.CANCELLED, Stage.REMOVED]).order_by("-number").first()
    if newest is None or newest.digest != digest or newest.stage == Stage.REPLACED:
        return None
    if newest.stage == Stage.FAILED:
        return None
    return newest


def _next_version(
    document: Document, kept: str, size: int, digest: str, kind: str, owner_id: uuid.UUID
) -> DocumentVersion:
    """A new version; one that was still on its way gives up its place."""
    overtaken = document.versions.filter(stage__in=[*DocumentVersion.UNDER_WAY, Stage.FAILED])
    jobs.stop(overtaken)
    overtaken.update(stage=Stage.CANCELLED)
    last = document.versions.aggregate(last=Max("number"))["last"] or 0
    return DocumentVersion.objects.create(
        document=document,
        number=last + 1,
        original=kept,
        size=size,
        digest=digest,
        kind=kind,
        uploaded_by_id=owner_id,
        due_at=timezone.now(),
    )

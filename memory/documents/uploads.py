"""Receive a file: store its bytes, and create a version for extraction."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import PurePath
from typing import BinaryIO, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Case, Max, Value, When
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import jobs
from memory.documents.extraction import formats
from memory.documents.metadata import set_document_metadata, validate_document_metadata
from memory.errors import DocumentConflictError, ExtractionError, InvalidInputError, VectorStoreDisabledError
from memory.events import record_events
from memory.exchanges.lifecycle import Metadata
from memory.models import Document, DocumentVersion, Event, Job, Space
from memory.models.documents import storage_path
from memory.spaces.access import ensure_open
from memory.text import clean_text, has_visible_text, without_bidi_controls
from memory.utils import stored_files
from memory.utils.formatting import error_text, format_number

Stage = DocumentVersion.Stage
_MAX_NAME_LENGTH = 255
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class UploadResult:
    """The version of an upload; `is_known` is True if the document already has these bytes."""

    version: DocumentVersion
    is_known: bool


def upload_document(
    file: File[bytes],
    *,
    name: str,
    space: Space,
    owner_id: uuid.UUID,
    source: str,
    source_path: str = "",
    metadata: Metadata | None = None,
    version_of: Document | None = None,
    is_separate: bool = False,
    document_id: uuid.UUID | None = None,
    is_replaced: bool = False,
) -> UploadResult:
    """Store a file as the next version of the document `name` in `space`; a worker extracts it after the commit.

    A file read from `source_path` on the server is a version of the document with that path. If another document has
    the name, more of the path is added to it. `metadata` replaces the document's metadata; None keeps it. `version_of`
    is a document that the caller has checked this person may change; without it, people only add versions to their own
    documents. `is_separate`: the file becomes a document of its own, with a number after its name if that is taken, and
    with the id `document_id`, if that is not None. `is_replaced`: the file is only kept, as that of a version that a later
    one has replaced.
    Raises InvalidInputError for an unsupported file or an archived project, DocumentConflictError if the document of this
    name belongs to someone else, and VectorStoreDisabledError.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_("Nothing is remembered: the vector store is disabled (vector_store.enabled)."))
    ensure_open(space)
    name = normalise_name(name)
    if not all(has_visible_text(PurePath(part).stem) for part in name.split("/")):
        raise InvalidInputError(
            _("The name of this file has only invisible characters. Rename the file and upload it again.")
        )
    validate_size(name, file.size)
    if metadata is not None:
        validate_document_metadata(metadata)
    kind = _kind(file, name)
    sha256 = _digest(file)
    stored_name = default_storage.save(storage_path(DocumentVersion(), name), file)
    with stored_files.delete_file_on_rollback(stored_name), transaction.atomic():
        document = _document(
            name,
            space,
            owner_id,
            source,
            source_path,
            version_of=version_of,
            is_separate=is_separate,
            document_id=document_id,
        )
        known = _version_with_bytes(document, sha256)
        may_change = document.owner_id == owner_id or (version_of is not None and version_of.pk == document.pk)
        if not may_change and (known is None or metadata is not None):
            raise DocumentConflictError(
                _("%(owner)s already has a document %(name)s here. Give the file another name.")
                % {"owner": document.owner, "name": name}
            )
        version = known or _next_version(
            document, stored_name, file.size, sha256, kind, owner_id, is_replaced=is_replaced
        )
        if metadata is not None:
            set_document_metadata(document, metadata)
        jobs.wake_worker_on_commit("read_documents")
    if known:
        default_storage.delete(stored_name)
    return UploadResult(version, is_known=known is not None)


def validate_size(name: str, size: int) -> None:
    """Raise InvalidInputError for an empty file, or one larger than `documents.max_file_mb`."""
    limit = settings.CATO.documents.max_file_mb
    if not size:
        raise InvalidInputError(_("%(name)s is empty.") % {"name": name})
    if size > limit * 1_000_000:
        sentence = _("%(name)s is too large (%(size)s MB; limit %(most)s MB, documents.max_file_mb).")
        raise InvalidInputError(sentence % {"name": name, "size": format_number(size / 1_000_000), "most": limit})


def normalise_name(name: str) -> str:
    """Return a file's name as the name of a document.

    Control characters, also those for text direction, are removed, and folders are joined by slashes.
    """
    parts = clean_text(unicodedata.normalize("NFC", name)).replace("\\", "/").split("/")
    visible = (without_bidi_controls(_CONTROL_CHARACTERS.sub(" ", part)).strip() for part in parts)
    cleaned = "/".join(part for part in visible if part not in ("", ".", ".."))
    return cleaned[-_MAX_NAME_LENGTH:] or _("Without a name")


def _kind(file: File[bytes], name: str) -> str:
    try:
        return formats.detect_format(cast(BinaryIO, file), name)
    except ExtractionError as error:
        raise InvalidInputError(f"{name}: {error_text(error)}") from error


def _digest(file: File[bytes]) -> str:
    sha256 = hashlib.sha256()
    for chunk in file.chunks():
        sha256.update(chunk)
    file.seek(0)
    return sha256.hexdigest()


def _document(
    name: str,
    space: Space,
    owner_id: uuid.UUID,
    source: str,
    source_path: str,
    *,
    version_of: Document | None,
    is_separate: bool,
    document_id: uuid.UUID | None,
) -> Document:
    """Return the document that the file is a version of, locked; create it if there is none."""
    documents = Document.objects.select_for_update().filter(space=space, forgotten_at=None)
    if version_of is not None and (found := documents.filter(pk=version_of.pk).first()) is not None:
        return found
    if source_path and (found := documents.filter(source_path=source_path).first()) is not None:
        return found
    for candidate in numbered_names(name, space) if is_separate else _names(name, source_path):
        document, is_new = documents.get_or_create(
            name=candidate,
            defaults={
                "id": document_id or uuid.uuid4(),
                "space": space,
                "owner_id": owner_id,
                "source": source,
                "source_path": source_path,
            },
        )
        if is_new or not (source_path or is_separate):
            return document
    raise InvalidInputError(
        _("%(name)s is the name of another document. Rename the file or its folder.") % {"name": name}
    )


def _names(name: str, source_path: str) -> Iterator[str]:
    """Yield the name, then longer and longer suffixes of the path."""
    yield name
    parts = PurePath(source_path).parts
    for count in range(name.count("/") + 2, len(parts) + 1):
        yield normalise_name("/".join(parts[-count:]))


def numbered_names(name: str, space: Space) -> Iterator[str]:
    """Yield the name, then the name with numbers, from the first that is probably free in the space."""
    yield name
    path = PurePath(name)
    taken = Document.objects.filter(space=space, forgotten_at=None, name__startswith=f"{path.stem} (").count()
    for number in count_from(taken + 2):
        ending = f" ({number}){path.suffix}"
        yield name[: _MAX_NAME_LENGTH - len(ending)].removesuffix(path.suffix) + ending


def _version_with_bytes(document: Document, sha256: str) -> DocumentVersion | None:
    """Return the newest version if it has these bytes and is live or in progress, else None."""
    newest = document.versions.present().order_by("-number").first()
    if newest is None or newest.sha256 != sha256 or newest.stage == Stage.REPLACED:
        return None
    if newest.stage == Stage.FAILED:
        return None
    return newest


def _next_version(
    document: Document,
    stored_name: str,
    size: int,
    sha256: str,
    kind: str,
    owner_id: uuid.UUID,
    *,
    is_replaced: bool,
) -> DocumentVersion:
    """Create the next version; one that failed or is still in progress is cancelled, or kept if it was live before."""
    replaced = document.versions.filter(stage__in=[*DocumentVersion.UNDER_WAY, Stage.FAILED])
    jobs.cancel(replaced)
    replaced.update(stage=Case(When(ready_at=None, then=Value(Stage.CANCELLED)), default=Value(Stage.REPLACED)))
    last = document.versions.aggregate(last=Max("number"))["last"] or 0
    record_events(Event.Kind.DOCUMENT_CHANGED if last else Event.Kind.DOCUMENT_ADDED, [document])
    return DocumentVersion.objects.create(
        document=document,
        number=last + 1,
        stage=Stage.REPLACED if is_replaced else Stage.RECEIVED,
        state=Job.State.DONE if is_replaced else Job.State.PENDING,
        original=stored_name,
        size=size,
        sha256=sha256,
        kind=kind,
        uploaded_by_id=owner_id,
        due_at=timezone.now(),
    )

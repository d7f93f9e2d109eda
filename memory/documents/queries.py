"""Read documents, versions and chunks as plain rows with their progress."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Min, OuterRef, QuerySet
from django.utils.translation import gettext as _

from memory.documents.publishing import chunk_progress
from memory.errors import NotFoundError
from memory.filters import Filter, to_sql
from memory.models import Chunk, Document, DocumentVersion, Exchange
from memory.spaces import access
from memory.spaces.access import SpaceIds

Stage = DocumentVersion.Stage


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """One version with its stage, the number of indexed chunks and the total (None until known)."""

    id: uuid.UUID
    number: int
    stage: str
    done: int
    total: int | None
    error: str
    size: int
    kind: str
    title: str
    uploaded_by: str
    created_at: datetime
    ready_at: datetime | None
    has_original: bool

    @property
    def is_under_way(self) -> bool:
        """Return True while a worker processes the version."""
        return self.stage in DocumentVersion.UNDER_WAY


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document with its live version and its newest version, which may be in progress or failed."""

    id: uuid.UUID
    name: str
    space_id: uuid.UUID
    space_kind: str
    space_name: str
    owner_id: uuid.UUID
    owner_name: str
    created_at: datetime
    live_version: VersionStatus | None
    newest: VersionStatus

    @property
    def is_under_way(self) -> bool:
        """Return True while a worker processes the newest version."""
        return self.newest.is_under_way


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk of a document; `text` is None if the chunk was forgotten separately."""

    exchange_id: uuid.UUID
    index: int
    start: int
    end: int
    separator: str
    location: str
    text: str | None


def readable_document(spaces: SpaceIds, document_id: uuid.UUID) -> Document:
    """Return the document if it is in `spaces`. Raises the same NotFoundError for missing and unreadable documents."""
    found = active_documents(spaces).filter(pk=document_id).select_related("space", "owner", "live_version").first()
    if found is None:
        raise NotFoundError(_("Not found."))
    return found


def document_to_change(spaces: SpaceIds, document_id: uuid.UUID, *, by: uuid.UUID, is_administrator: bool) -> Document:
    """Return the document if it is in `spaces` and `by` owns it or is an administrator. Raises NotFoundError."""
    document = readable_document(spaces, document_id)
    if document.owner_id != by and not is_administrator:
        raise NotFoundError(_("Not found."))
    return document


def active_documents(spaces: SpaceIds, *, filters: Filter | None = None) -> QuerySet[Document]:
    """Return the documents in `spaces` that are not forgotten, with `filters` only those with a passage that matches."""
    documents = access.in_spaces(Document.objects.filter(forgotten_at=None), spaces)
    if filters is None:
        return documents
    passages = Exchange.objects.filter(to_sql(filters), chunks__version=OuterRef("live_version"), forgotten_at=None)
    return documents.filter(Exists(passages))


def document_statuses(documents: Iterable[Document]) -> list[DocumentStatus]:
    """Return the status of each document, in order."""
    documents = list(documents)
    versions: dict[uuid.UUID, list[DocumentVersion]] = {document.pk: [] for document in documents}
    present = DocumentVersion.objects.present().filter(document__in=documents)
    for version in present.select_related("uploaded_by").order_by("-number"):
        versions[version.document_id].append(version)
    progress = chunk_progress([version.pk for rows in versions.values() for version in rows])
    rows = []
    for document in documents:
        states = {version.pk: _state(version, progress) for version in versions[document.pk]}
        if not states:
            continue
        rows.append(
            DocumentStatus(
                id=document.pk,
                name=document.name,
                space_id=document.space_id,
                space_kind=document.space.kind,
                space_name=document.space.display_name,
                owner_id=document.owner_id,
                owner_name=str(document.owner),
                created_at=document.created_at,
                live_version=states.get(document.live_version_id) if document.live_version_id else None,
                newest=next(iter(states.values())),
            )
        )
    return rows


def unfinished_versions(document_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, VersionStatus]:
    """Return the newest version of each of these documents, by document, if it is in progress or has failed.

    One statement if all of them are in the index.
    """
    present = DocumentVersion.objects.present().filter(document__in=list(document_ids), document__forgotten_at=None)
    newest = {row.document_id: row for row in present.select_related("uploaded_by").order_by("number")}
    unfinished = [row for row in newest.values() if row.stage in (*DocumentVersion.UNDER_WAY, Stage.FAILED)]
    progress = chunk_progress([row.pk for row in unfinished]) if unfinished else {}
    return {row.document_id: _state(row, progress) for row in unfinished}


def first_unread_upload(spaces: SpaceIds, *, since: datetime) -> datetime | None:
    """Return when the first file was uploaded that is still read or embedded, of those in `spaces` since then."""
    versions = DocumentVersion.objects.filter(
        stage__in=DocumentVersion.UNDER_WAY, created_at__gte=since, document__space_id__in=spaces
    )
    uploaded_at: datetime | None = versions.aggregate(first=Min("created_at"))["first"]
    return uploaded_at


def list_versions(document: Document) -> list[VersionStatus]:
    """Return all versions that are not cancelled or removed, newest first."""
    versions = list(document.versions.present().select_related("uploaded_by").order_by("-number"))
    progress = chunk_progress([version.pk for version in versions])
    return [_state(version, progress) for version in versions]


def list_chunks(document: Document, *, since: int, count: int) -> list[ChunkText]:
    """Return up to `count` chunks of the live version, from index `since`."""
    chunks = Chunk.objects.filter(version=document.live_version_id, index__gte=since).select_related("exchange")
    return [
        ChunkText(
            exchange_id=chunk.exchange_id,
            index=chunk.index,
            start=chunk.start,
            end=chunk.end,
            separator=chunk.separator,
            location=chunk.location,
            text=None if chunk.exchange.forgotten_at else chunk.exchange.user_message,
        )
        for chunk in chunks.order_by("index")[:count]
    ]


def chunk_index_at(document: Document, offset: int) -> int:
    """Return the index of the last chunk of the live version that starts at or before `offset`, or 0."""
    chunks = Chunk.objects.filter(version=document.live_version_id, start__lte=max(offset, 0))
    found = chunks.order_by("-index").values_list("index", flat=True).first()
    return found or 0


def _state(version: DocumentVersion, progress: dict[uuid.UUID, int]) -> VersionStatus:
    return VersionStatus(
        id=version.pk,
        number=version.number,
        stage=version.stage,
        done=progress.get(version.pk, 0),
        total=version.total_chunks,
        error=version.error,
        size=version.size,
        kind=version.kind,
        title=version.title,
        uploaded_by=str(version.uploaded_by),
        created_at=version.created_at,
        ready_at=version.ready_at,
        has_original=bool(version.original),
    )

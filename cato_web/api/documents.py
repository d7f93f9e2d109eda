"""Operations: documents, uploaded in the background, with their versions and originals."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.http.response import HttpResponseBase
from ninja import File, Form, Query, Router
from ninja.files import UploadedFile
from ninja.responses import Status

from cato_web.api import schemas, serializers
from cato_web.api.responses import CHANGE, FIND, STORE, responses, gone_by
from cato_web.api.auth import READ, WRITE, ApiRequest, current_user, readable_spaces, resolve_space
from cato_web.api.fields import Line, MetadataText, SpaceName
from cato_web.api.paging import Cursor, Limit, paginate
from memory import api as memory
from memory.api import (
    Chunk,
    Document,
    DocumentStatus,
    Exchange,
    NotFoundError,
    active_documents,
    document_statuses,
    document_to_change,
    list_versions,
    normalise_name,
    readable_document,
    stream_original,
)

router = Router(tags=["documents"])
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE = {"responses": {200: {"content": _BYTES}}}


@router.get("/documents", auth=READ, response=responses(schemas.Documents, *FIND))
def list_documents(
    request: ApiRequest,
    space: Annotated[SpaceName | None, Query()] = None,
    limit: Limit = 50,
    cursor: Annotated[Cursor, Query()] = None,
) -> schemas.Documents:
    """The documents this person may read, newest first."""
    readable = active_documents(readable_spaces(request, space)).select_related("space", "owner")
    page, after = paginate(readable, "created_at", cursor, limit)
    return schemas.Documents(documents=serializers.serialize_documents(document_statuses(page), page), next=after)


@router.post("/documents", auth=WRITE, response=responses(schemas.Uploaded, *STORE, 413, status=202))
def upload_document(
    request: ApiRequest,
    file: Annotated[UploadedFile, File(description="The file.")],
    name: Annotated[Line | None, Form(description="Its name; else that of the file.")] = None,
    space: Annotated[SpaceName | None, Form()] = None,
    metadata: Annotated[MetadataText | None, Form()] = None,
) -> Status[schemas.Uploaded]:
    """Keep a file, the next version of the document of its name in that space; a worker reads and embeds it."""
    received = memory.upload_document(
        file,
        name=normalise_name(name or file.name or ""),
        space=resolve_space(request, space),
        owner_id=current_user(request).pk,
        source=Exchange.Source.UPLOAD,
        metadata=metadata,
    )
    shown = _shown(request, received.version.document_id)
    return Status(202, schemas.Uploaded(document=shown, is_known=received.is_known))


@router.get("/documents/{uuid:document_id}", auth=READ, response=responses(schemas.DocumentDetail, *FIND))
def get_document(request: ApiRequest, document_id: uuid.UUID) -> schemas.DocumentDetail:
    """One document with its versions, and how far each is."""
    found = readable_document(readable_spaces(request), document_id)
    return serializers.serialize_document_detail(_state(found), found, list_versions(found))


@router.patch("/documents/{uuid:document_id}", auth=WRITE, response=responses(schemas.Document, *CHANGE))
def change_document(request: ApiRequest, document_id: uuid.UUID, changes: schemas.DocumentChanges) -> schemas.Document:
    """Give a document other metadata, or move it to another space with all its passages."""
    found = _to_change(request, document_id)
    to = resolve_space(request, changes.space) if changes.space is not None else None
    if changes.metadata is not None:
        memory.set_document_metadata(found, changes.metadata)
    if to is not None and to.pk != found.space_id:
        memory.move_document(found, to=to, by=current_user(request).pk)
    return _shown(request, document_id)


@router.delete("/documents/{uuid:document_id}", auth=WRITE, response=responses(schemas.Receipt, *FIND))
def forget_document(request: ApiRequest, document_id: uuid.UUID) -> schemas.Receipt:
    """Delete a document with all its versions: nobody finds or recalls it from now on."""
    found = _to_change(request, document_id)
    memory.forget_documents([found.pk], by=current_user(request).pk)
    return _receipt(Chunk.objects.filter(version__document=found).values("exchange").distinct().count())


@router.delete(
    "/documents/{uuid:document_id}/versions/{int:number}", auth=WRITE, response=responses(schemas.Receipt, *FIND)
)
def forget_version(request: ApiRequest, document_id: uuid.UUID, number: int) -> schemas.Receipt:
    """Delete one version; was it the one that serves, the newest that is kept takes its place."""
    found = _to_change(request, document_id)
    version = next((row for row in list_versions(found) if row.number == number), None)
    if version is None:
        raise NotFoundError
    passages = Chunk.objects.filter(version=version.id).count()
    memory.forget_version(found.versions.get(pk=version.id), by=current_user(request).pk)
    return _receipt(passages)


@router.get(
    "/documents/{uuid:document_id}/versions/{int:number}/original",
    auth=READ,
    response=responses(None, *FIND),
    openapi_extra=_FILE,
)
def get_original(request: ApiRequest, document_id: uuid.UUID, number: int) -> HttpResponseBase:
    """The file as it was uploaded."""
    return stream_original(readable_document(readable_spaces(request), document_id), number)


def _to_change(request: ApiRequest, document_id: uuid.UUID) -> Document:
    person = current_user(request)
    return document_to_change(
        readable_spaces(request), document_id, by=person.pk, is_administrator=person.is_administrator
    )


def _shown(request: ApiRequest, document_id: uuid.UUID) -> schemas.Document:
    found = readable_document(readable_spaces(request), document_id)
    return serializers.serialize_documents([_state(found)], [found])[0]


def _state(found: Document) -> DocumentStatus:
    states = document_statuses([found])
    if not states:
        raise NotFoundError
    return states[0]


def _receipt(passages: int) -> schemas.Receipt:
    return schemas.Receipt(exchanges=passages, under_way=passages, gone_by=gone_by())

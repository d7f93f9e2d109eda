"""Operations: documents, their versions and original files."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.http.response import HttpResponseBase
from ninja import File, Form, Query, Router
from ninja.files import UploadedFile
from ninja.responses import Status

from cato_web.api import schemas, serializers
from cato_web.api.auth import READ, WRITE, ApiRequest, Scope, create_once, current_user, readable_spaces, resolve_space
from cato_web.api.errors import CHANGE, FIND, STORE, responses
from cato_web.api.fields import Key, Line, MetadataText, SpaceName
from cato_web.api.paging import Cursor, Limit, paginate
from cato_web.idempotency import file_digest
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
_BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE_RESPONSE = {"responses": {200: {"content": _BINARY}}}


@router.get("/documents", auth=READ, response=responses(schemas.Documents, *FIND))
def list_documents(
    request: ApiRequest,
    space: Annotated[SpaceName | None, Query()] = None,
    limit: Limit = 50,
    cursor: Annotated[Cursor, Query()] = None,
) -> schemas.Documents:
    """List the documents that the user can read, newest first."""
    readable = active_documents(readable_spaces(request, space)).select_related("space", "owner")
    page, after = paginate(readable, "created_at", cursor, limit)
    return schemas.Documents(documents=serializers.serialize_documents(document_statuses(page), page), next=after)


@router.post("/documents", auth=WRITE, response=responses(schemas.Uploaded, *STORE, 413, status=202))
def upload_document(
    request: ApiRequest,
    file: Annotated[UploadedFile, File(description="The file.")],
    name: Annotated[Line | None, Form(description="Name of the document; by default that of the file.")] = None,
    space: Annotated[SpaceName | None, Form()] = None,
    metadata: Annotated[MetadataText | None, Form()] = None,
    idempotency_key: Key = None,
) -> Status[schemas.Uploaded]:
    """Upload a file as the next version of the document with its name; a worker extracts and embeds it.

    Without the scope `read`, the response omits its name, title and metadata.
    """
    name, target = normalise_name(name or file.name or ""), resolve_space(request, space)
    known: list[bool] = []

    def create() -> list[uuid.UUID]:
        uploaded = memory.upload_document(
            file,
            name=name,
            space=target,
            owner_id=current_user(request).pk,
            source=Exchange.Source.UPLOAD,
            metadata=metadata,
        )
        known.append(uploaded.is_known)
        return [uploaded.version.document_id]

    content = [name, str(target.pk), metadata, file_digest(file) if idempotency_key else ""]
    (id,) = create_once(request, idempotency_key, content, create)
    return Status(202, schemas.Uploaded(document=_serialize_document(request, id), is_known=known != [False]))


@router.get("/documents/{uuid:document_id}", auth=READ, response=responses(schemas.DocumentDetail, *FIND))
def get_document(request: ApiRequest, document_id: uuid.UUID) -> schemas.DocumentDetail:
    """Return a document with its versions and their progress."""
    document = readable_document(readable_spaces(request), document_id)
    return serializers.serialize_document_detail(_document_status(document), document, list_versions(document))


@router.patch("/documents/{uuid:document_id}", auth=WRITE, response=responses(schemas.Document, *CHANGE))
def change_document(request: ApiRequest, document_id: uuid.UUID, changes: schemas.DocumentChanges) -> schemas.Document:
    """Replace a document's metadata, or move it to another space with all its passages.

    Without the scope `read`, the response omits its name, title and metadata.
    """
    document = _document_to_change(request, document_id)
    target = resolve_space(request, changes.space) if changes.space is not None else None
    if changes.metadata is not None:
        memory.set_document_metadata(document, changes.metadata)
    if target is not None and target.pk != document.space_id:
        memory.move_document(document, to=target, by=current_user(request).pk)
    return _serialize_document(request, document_id)


@router.delete("/documents/{uuid:document_id}", auth=WRITE, response=responses(schemas.Receipt, *FIND))
def forget_document(request: ApiRequest, document_id: uuid.UUID) -> schemas.Receipt:
    """Delete a document with all its versions, and remove it from search and recall."""
    document = _document_to_change(request, document_id)
    memory.forget_documents([document.pk], by=current_user(request).pk)
    passages = Chunk.objects.filter(version__document=document).values("exchange").distinct().count()
    return serializers.receipt(passages, passages)


@router.delete(
    "/documents/{uuid:document_id}/versions/{int:number}", auth=WRITE, response=responses(schemas.Receipt, *FIND)
)
def forget_version(request: ApiRequest, document_id: uuid.UUID, number: int) -> schemas.Receipt:
    """Delete one version. If it was the live one, the newest remaining version takes its place."""
    document = _document_to_change(request, document_id)
    version = next((row for row in list_versions(document) if row.number == number), None)
    if version is None:
        raise NotFoundError
    passages = Chunk.objects.filter(version=version.id).count()
    memory.forget_version(document.versions.get(pk=version.id), by=current_user(request).pk)
    return serializers.receipt(passages, passages)


@router.get(
    "/documents/{uuid:document_id}/versions/{int:number}/original",
    auth=READ,
    response=responses(None, *FIND),
    openapi_extra=_FILE_RESPONSE,
)
def get_original(request: ApiRequest, document_id: uuid.UUID, number: int) -> HttpResponseBase:
    """Return the uploaded file."""
    return stream_original(readable_document(readable_spaces(request), document_id), number)


def _document_to_change(request: ApiRequest, document_id: uuid.UUID) -> Document:
    person = current_user(request)
    return document_to_change(
        readable_spaces(request), document_id, by=person.pk, is_administrator=person.is_administrator
    )


def _serialize_document(request: ApiRequest, document_id: uuid.UUID) -> schemas.Document:
    document = readable_document(readable_spaces(request), document_id)
    serialized = serializers.serialize_documents([_document_status(document)], [document])[0]
    if Scope.READ in request.auth.scopes:
        return serialized
    newest = serialized.newest.model_copy(update={"title": ""})
    return serialized.model_copy(update={"name": "", "metadata": {}, "newest": newest})


def _document_status(document: Document) -> DocumentStatus:
    states = document_statuses([document])
    if not states:
        raise NotFoundError
    return states[0]

"""Operations: imports of conversations from exports of Cato and of other products."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Literal

from django.utils.translation import gettext as _
from ninja import File, Form, Query, Router
from ninja.files import UploadedFile
from ninja.responses import Status
from pydantic import Field

from cato_web.api.auth import READ, WRITE, ApiRequest, create_once, current_user, resolve_space
from cato_web.api.errors import CHANGE, FIND, STORE, responses
from cato_web.api.fields import Key, SpaceName
from cato_web.api.paging import Cursor, Limit, paginate
from cato_web.api.schemas import ResponseModel
from cato_web.idempotency import file_digest
from chat.errors import ConflictError
from chat.imports import jobs
from chat.models import ImportJob
from memory.api import Job

router = Router(tags=["imports"])


class Skipped(ResponseModel):
    """A conversation that was not, or not completely, imported."""

    title: str
    why: str


class Import(ResponseModel):
    """An import with its progress. What is found was imported, was there already, or is not imported for a reason."""

    id: uuid.UUID
    name: str = Field(description="Name of the file.")
    state: Literal["running", "done", "failed", "cancelled"]
    error: str = Field(description='Why it failed or was interrupted, otherwise "".')
    total: int | None = Field(description="Number of conversations in the file; null until they are counted.")
    read: int = Field(description="Number of conversations that were processed.")
    found: int = Field(description="Conversations, projects and memories.")
    imported: int
    already_there: int
    turns: int = Field(description="Imported messages with their answers.")
    not_imported: dict[str, int] = Field(description="Numbers of what was not imported, by the reason.")
    left_out: dict[str, int] = Field(description="Numbers of parts that were left out of what was imported, by kind.")
    skipped: list[Skipped] = Field(description="The first conversations that were skipped.")
    created_at: datetime
    finished_at: datetime | None


class Imports(ResponseModel):
    """A page of imports; `next` is the cursor of the following page."""

    imports: list[Import]
    next: str | None


@router.post("/imports", auth=WRITE, response=responses(Import, *STORE, 413, status=202))
def start_import(
    request: ApiRequest,
    file: Annotated[UploadedFile, File(description="The export, as it was downloaded.")],
    space: Annotated[SpaceName | None, Form()] = None,
    idempotency_key: Key = None,
) -> Status[Import]:
    """Import conversations into a space; a worker reads the file.

    What was imported before is recognised and not imported again.
    """
    person_id = current_user(request).pk
    content = [file.name, file_digest(file) if idempotency_key else "", space]

    def create() -> list[uuid.UUID]:
        return [jobs.create_import(file, owner_id=person_id, space=resolve_space(request, space)).pk]

    (id,) = create_once(request, idempotency_key, content, create)
    return Status(202, _serialize(jobs.get_import(person_id, id)))


@router.get("/imports", auth=READ, response=responses(Imports))
def list_imports(request: ApiRequest, limit: Limit = 50, cursor: Annotated[Cursor, Query()] = None) -> Imports:
    """List the user's imports, newest first."""
    page, after = paginate(jobs.list_imports(current_user(request).pk), "created_at", cursor, limit)
    return Imports(imports=[_serialize(row) for row in page], next=after)


@router.get("/imports/{uuid:import_id}", auth=READ, response=responses(Import, *FIND))
def get_import(request: ApiRequest, import_id: uuid.UUID) -> Import:
    """Return an import with its progress."""
    return _serialize(jobs.get_import(current_user(request).pk, import_id))


@router.post("/imports/{uuid:import_id}/cancel", auth=WRITE, response=responses(Import, *CHANGE))
def cancel_import(request: ApiRequest, import_id: uuid.UUID) -> Import:
    """Cancel a running import. What was imported until then stays."""
    person_id = current_user(request).pk
    if not jobs.cancel(jobs.get_import(person_id, import_id)):
        raise ConflictError(_("Already finished."))
    return _serialize(jobs.get_import(person_id, import_id))


def _serialize(row: ImportJob) -> Import:
    state: Literal["running", "done", "failed", "cancelled"]
    if row.cancelled_at:
        state = "cancelled"
    elif row.is_under_way:
        state = "running"
    else:
        state = "failed" if row.state == Job.State.FAILED else "done"
    return Import(
        id=row.id,
        name=row.name,
        state=state,
        error=row.error,
        total=row.total,
        read=row.read,
        found=row.found,
        imported=row.imported,
        already_there=row.already_there,
        turns=row.turns,
        not_imported=row.not_imported,
        left_out=row.left_out,
        skipped=[Skipped(title=title, why=why) for title, why in row.skipped],
        created_at=row.created_at,
        finished_at=row.finished_at,
    )

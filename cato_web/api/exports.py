"""Operations: the archive of the user's own data."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http.response import HttpResponseBase
from ninja import Router
from ninja.responses import Status
from pydantic import Field

from cato_web.accounts.export import jobs
from cato_web.accounts.export.responses import archive_response
from cato_web.accounts.models import ExportJob
from cato_web.api.auth import READ, ApiRequest, create_once, current_user
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import Key
from cato_web.api.schemas import ResponseModel
from memory.api import Job, NotFoundError

router = Router(tags=["export"])
_ZIP = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}


class Export(ResponseModel):
    """The archive of the user's data, of which there is one, with its progress."""

    state: Literal["running", "done", "failed", "outdated"] = Field(
        description="`outdated`: something in it was forgotten or changed, and it was deleted."
    )
    error: str = Field(description='Why it failed or was interrupted, otherwise "".')
    total: int | None = Field(description="Number of messages, memories and files; null until they are counted.")
    read: int = Field(description="How many of them are in the archive.")
    size: int = Field(description="Bytes of the archive, 0 if it cannot be downloaded.")
    requested_at: datetime
    expires_at: datetime | None = Field(description="When the archive is deleted.")


@router.post("/export", auth=READ, response=responses(Export, 409, status=202))
def start_export(request: ApiRequest, idempotency_key: Key = None) -> Status[Export]:
    """Have a worker prepare the archive, in place of the last one; return the present one while it is being prepared."""
    user = current_user(request)
    create_once(request, idempotency_key, [], lambda: [jobs.request_export(user).pk])
    return Status(202, _serialize(jobs.find_export(user)))


@router.get("/export", auth=READ, response=responses(Export, *FIND))
def get_export(request: ApiRequest) -> Export:
    """Return how far the archive is."""
    return _serialize(jobs.find_export(current_user(request)))


@router.get(
    "/export/archive",
    auth=READ,
    response=responses(None, *FIND),
    openapi_extra={"responses": {200: {"content": _ZIP}}},
)
def download_export(request: ApiRequest) -> HttpResponseBase:
    """Return the archive, if nothing in it was forgotten or changed since."""
    export = jobs.find_export(current_user(request))
    if export is None or not export.file:
        raise NotFoundError
    return archive_response(export)


def _serialize(export: ExportJob | None) -> Export:
    if export is None:
        raise NotFoundError
    state: Literal["running", "done", "failed", "outdated"]
    if export.is_outdated:
        state = "outdated"
    elif export.state == Job.State.PENDING:
        state = "running"
    else:
        state = "failed" if export.state == Job.State.FAILED else "done"
    return Export(
        state=state,
        error=export.error,
        total=export.total,
        read=export.read,
        size=export.size,
        requested_at=export.requested_at,
        expires_at=export.finished_at + jobs.EXPIRES_AFTER if export.file and export.finished_at else None,
    )

"""Operation: the feed of what changed in memory."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from ninja import Query, Router
from pydantic import Field

from cato_web.api.auth import READ, ApiRequest, readable_spaces
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import SpaceName
from cato_web.api.schemas import ResponseModel
from memory import api as memory

router = Router(tags=["events"])
# The greatest integer that programs read exactly from JSON.
_MAX_POSITION = 2**53 - 1


class Event(ResponseModel):
    """A change in memory, without text. The object is read by its id, if it still can be."""

    position: int
    kind: str = Field(json_schema_extra={"enum": list(memory.Event.Kind.values)})
    object_id: uuid.UUID = Field(description="The exchange or document; of a record, its exchange.")
    thread_id: uuid.UUID | None
    space_id: uuid.UUID
    created_at: datetime


class Events(ResponseModel):
    """Events in their order; pass `next` as `after` for the following ones, at once if `has_more` is true."""

    events: list[Event]
    next: int
    has_more: bool
    last: int = Field(
        description="The end of the feed. A program that reads the lists first begins with this position."
    )


@router.get("/events", auth=READ, response=responses(Events, *FIND, 410))
def list_events(
    request: ApiRequest,
    after: Annotated[
        int | None, Query(ge=0, le=_MAX_POSITION, description="`next` of the previous response; omitted: the oldest.")
    ] = None,
    space: Annotated[SpaceName | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of events.")] = 100,
) -> Events:
    """List what changed in the spaces that the user can read now, oldest first, in an order that never changes.

    A position after which events were removed is refused with 410.
    """
    page = memory.list_events(spaces=readable_spaces(request, space), after=after, limit=limit)
    return Events.model_validate(page)

"""Request and response models of records."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictFloat, StrictInt

from cato_web.api.fields import Conditions, Metadata, SpaceName, Text
from cato_web.api.schemas import RequestModel, ResponseModel


class NewRecord(RequestModel):
    """A record; without `vector` its text is embedded."""

    id: Annotated[Text, Field(min_length=1, max_length=255, examples=["device-fw-1"])]
    text: Annotated[Text, Field(min_length=1, examples=["The perimeter firewall."])]
    metadata: Metadata = {}
    vector: Annotated[list[StrictFloat], Field(min_length=1, max_length=10_000)] | None = None


class NewRecords(RequestModel):
    """Records to store in one space, by default the personal one."""

    records: Annotated[list[NewRecord], Field(min_length=1, max_length=1000)]
    space: SpaceName | None = None


class StoredRecord(ResponseModel):
    """The ids of a stored record."""

    id: str
    exchange_id: uuid.UUID


class StoredRecords(ResponseModel):
    """The stored records, in the order of the request."""

    records: list[StoredRecord]


class RecordQuery(RequestModel):
    """Query by text, vector or both. `filters` must match; records that match `prefer` come first."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["text"], "properties": {"text": {"type": "string"}}},
                {"required": ["vector"], "properties": {"vector": {"type": "array"}}},
            ]
        }
    )

    text: Text | None = None
    vector: Annotated[list[StrictFloat], Field(min_length=1, max_length=10_000)] | None = None
    topK: Annotated[StrictInt, Field(ge=1, le=100)] = 8
    filters: Conditions | None = None
    prefer: Conditions | None = None
    space: SpaceName | None = None


class Record(ResponseModel):
    """A record that matches a query."""

    id: str
    exchange_id: uuid.UUID
    text: str
    metadata: dict[str, Any]
    similarity: float | None
    score: float


class Records(ResponseModel):
    """Matching records, best first."""

    records: list[Record]


class Deleted(ResponseModel):
    """The number of deleted records."""

    deleted: int

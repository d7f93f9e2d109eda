"""Request and response models of the API, from which the OpenAPI document is generated.

Those of threads, records and the calls for administrators are in modules of their own.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from cato_web.api.fields import Metadata, SpaceName, Text, Time
from memory import api as memory

_EXAMPLE = "Who has the key of the archive?"
Message = Annotated[Text, Field(min_length=1, examples=[_EXAMPLE])]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are rejected, so that typing errors are noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """Base of responses."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class ErrorBody(ResponseModel):
    """Code and message of an error."""

    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["Not found."])


class Error(ResponseModel):
    """An error: a code for programs and a message for people."""

    error: ErrorBody


class TokenInfo(ResponseModel):
    """The token of the request."""

    name: str
    scopes: list[str]
    expires_at: datetime | None


class Me(ResponseModel):
    """The owner of the token."""

    id: uuid.UUID
    name: str
    email: str
    role: str
    token: TokenInfo


class SpaceInfo(ResponseModel):
    """A space."""

    id: uuid.UUID
    kind: str = Field(description="own, group, project or team")
    name: str


class Spaces(ResponseModel):
    """All readable spaces."""

    spaces: list[SpaceInfo]


class Instruction(ResponseModel):
    """A standing instruction: how answers should always be in the threads of its space."""

    id: uuid.UUID
    space_id: uuid.UUID = Field(description="A personal space, a group or the team.")
    text: str
    created_at: datetime


class InstructionStatus(Instruction):
    """A standing instruction, and whether it applies."""

    state: str = Field(description="kept, recognised (applies until dismissed) or suggested (not until kept)")
    is_on: bool


class Instructions(ResponseModel):
    """The instructions of all readable spaces, oldest first."""

    instructions: list[InstructionStatus]


class LocationInfo(ResponseModel):
    """The location of a passage in a document; offsets count characters."""

    document_id: uuid.UUID
    index: int
    start: int
    end: int
    label: str = Field(description="Page, slide, sheet or heading.")


class ExchangeText(ResponseModel):
    """A message and its answer. Notes and passages of documents have only `user_message`."""

    id: uuid.UUID
    space_id: uuid.UUID
    who: str
    thread_id: uuid.UUID | None
    session_id: uuid.UUID | None
    turn_id: uuid.UUID | None
    user_message: str
    assistant_message: str
    timestamp: datetime
    source: str
    source_file: str


class Exchange(ExchangeText):
    """An exchange in memory and its indexing state."""

    owner_id: uuid.UUID
    prior_exchange_ids: list[uuid.UUID] = Field(description="The exchanges that were recalled for it.")
    thread_session_id: str | None
    thread_continuation_seq: int | None = Field(description="Counts the sessions of its thread from 0.")
    manual_entry: bool
    chunk_index: int | None
    total_chunks: int | None
    metadata: dict[str, Any]
    state: str = Field(description="remembering, waiting, remembered or failed")


class StatementSource(ResponseModel):
    """An exchange that supports a statement, with its words."""

    exchange_id: uuid.UUID
    quote: str
    who: str
    said_at: datetime


class Statement(ResponseModel):
    """One sentence of knowledge."""

    id: uuid.UUID = Field(description="Also the id of the exchange that has its text.")
    text: str
    kind: memory.Statement.Kind
    topic: str
    state: memory.Statement.State
    superseded_by: uuid.UUID | None
    contradicts: list[uuid.UUID]
    space_id: uuid.UUID
    first_said_at: datetime
    last_said_at: datetime
    confirmed_by: str | None
    confirmed_at: datetime | None
    revision: int
    sources: list[StatementSource]


class SearchHit(ExchangeText):
    """A search hit. `similarity` is null if it was found by terms only."""

    place: LocationInfo | None
    statement: Statement | None = Field(description="If `source` is knowledge, the statement whose text this is.")
    similarity: float | None
    score: float
    strategy: str
    reason: str
    is_below_gate: bool = Field(description="The hit is below the relevance gate and would not be recalled.")


class Context(ResponseModel):
    """Prompt context for a text; empty if nothing relevant is in memory."""

    context: str


class SearchResponse(ResponseModel):
    """Search hits, best first."""

    hits: list[SearchHit]
    note: str = Field(
        description=(
            "words: the search index did not respond; unsent: the embedding provider may not receive the text; in both cases "
            "results are by terms only; otherwise empty"
        )
    )


class RecallRequest(RequestModel):
    """The last messages of a conversation, newest last."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=20)]
    spaces: Annotated[list[SpaceName], Field(max_length=50)] | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = None


class Recalled(ResponseModel):
    """The recalled hits, and the same as prompt context, quoted and numbered."""

    results: list[SearchHit]
    context: str
    note: str = Field(
        description=(
            "words: the search index did not respond; unsent: the embedding provider may not receive the text; "
            "failed: recall was not possible; date: the newest of the period that the "
            "message asks about; nothing: nothing was remembered in it; otherwise empty"
        )
    )


class NewExchange(RequestModel):
    """An exchange (`user_message` and `assistant_message`) or a note (`text`), which is split if it is long."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string"},
                        "user_message": {"type": "null"},
                        "assistant_message": {"maxLength": 0},
                    },
                },
                {
                    "required": ["user_message"],
                    "properties": {"user_message": {"type": "string"}, "text": {"type": "null"}},
                },
            ]
        }
    )

    user_message: Message | None = None
    assistant_message: Text = ""
    text: Annotated[Text, Field(min_length=1, examples=["The key of the archive hangs behind the door."])] | None = None
    space: SpaceName | None = None
    timestamp: Time | None = None
    metadata: Metadata = {}


class NewExchanges(RequestModel):
    """Exchanges and notes to add."""

    exchanges: Annotated[list[NewExchange], Field(min_length=1, max_length=100)]


class Exchanges(ResponseModel):
    """A page of exchanges; pass `next` as `cursor` for the next page."""

    exchanges: list[Exchange]
    next: str | None = None


class MetadataUpdate(RequestModel):
    """Metadata that replaces the existing metadata."""

    metadata: Metadata


class Receipt(ResponseModel):
    """A receipt for what was forgotten. It cannot be read any more; `under_way` counts what is still in the index."""

    exchanges: int
    under_way: int
    gone_by: datetime


class Version(ResponseModel):
    """One version of a document: `done` of `total` passages are indexed (null: not known yet)."""

    number: int
    stage: str = Field(
        description="received, reading, chunking, embedding, ready, failed or replaced", examples=["embedding"]
    )
    done: int
    total: int | None
    error: str
    size: int = Field(description="bytes")
    kind: str
    title: str
    uploaded_by: str
    created_at: datetime
    ready_at: datetime | None
    has_original: bool


class Document(ResponseModel):
    """A document: `serving` is the number of its live version (null: none yet), `newest` the latest version."""

    id: uuid.UUID
    name: str
    space_id: uuid.UUID
    owner_id: uuid.UUID
    who: str
    metadata: dict[str, Any]
    created_at: datetime
    serving: int | None
    newest: Version


class DocumentDetail(Document):
    """A document with all its versions."""

    versions: list[Version]


class Documents(ResponseModel):
    """A page of documents; pass `next` as `cursor` for the next page."""

    documents: list[Document]
    next: str | None


class Uploaded(ResponseModel):
    """`is_known`: the document's live version already has these bytes."""

    document: Document
    is_known: bool


class DocumentChanges(RequestModel):
    """Changes of a document; omitted fields stay unchanged."""

    metadata: Metadata | None = None
    space: SpaceName | None = None

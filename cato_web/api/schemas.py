"""Request and response models of the API, from which the OpenAPI document is generated."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from cato_web.api.fields import Conditions, Line, Metadata, SpaceName, Text, Time

_EXAMPLE = "Who has the key of the archive?"
Message = Annotated[Text, Field(min_length=1, examples=[_EXAMPLE])]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are rejected, so that typing errors are noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """Base of responses."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class ErrorBody(ResponseModel):
    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["Not found."])


class Error(ResponseModel):
    """An error: a code for programs and a message for people."""

    error: ErrorBody


class TokenInfo(ResponseModel):
    name: str
    scopes: list[str]
    expires_at: datetime | None


class Me(ResponseModel):
    id: uuid.UUID
    name: str
    email: str
    role: str
    token: TokenInfo


class SpaceInfo(ResponseModel):
    id: uuid.UUID
    kind: str = Field(description="own, group or team")
    name: str


class Spaces(ResponseModel):
    spaces: list[SpaceInfo]


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


class SearchHit(ExchangeText):
    """A search hit. `similarity` is null if it was found by terms only."""

    place: LocationInfo | None
    similarity: float | None
    score: float
    strategy: str
    reason: str
    is_below_gate: bool = Field(description="The hit is below the relevance gate and would not be recalled.")


class Context(ResponseModel):
    """Prompt context for a text; empty if nothing relevant is in memory."""

    context: str


class SearchResponse(ResponseModel):
    hits: list[SearchHit]
    note: str = Field(description="words: the search index did not respond, results are by terms only; otherwise empty")


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
        description="words: the search index did not respond; failed: recall was not possible; otherwise empty"
    )


class NewExchange(RequestModel):
    """An exchange (`user_message` and `assistant_message`) or a note (`text`), which is split if it is long."""

    user_message: Message | None = None
    assistant_message: Text = ""
    text: Annotated[Text, Field(min_length=1, examples=["The key of the archive hangs behind the door."])] | None = None
    space: SpaceName | None = None
    timestamp: Time | None = None
    metadata: Metadata = {}


class Exchanges(ResponseModel):
    exchanges: list[Exchange]
    next: str | None = None


class MetadataUpdate(RequestModel):
    metadata: Metadata


class Receipt(ResponseModel):
    """What was forgotten. It cannot be read any more; `under_way` counts what is still in the index."""

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
    live_version: int | None
    newest: Version


class DocumentDetail(Document):
    versions: list[Version]


class Documents(ResponseModel):
    documents: list[Document]
    next: str | None


class Uploaded(ResponseModel):
    """`is_known`: the document's live version already has these bytes."""

    document: Document
    is_known: bool


class DocumentChanges(RequestModel):
    metadata: Metadata | None = None
    space: SpaceName | None = None


class NewThread(RequestModel):
    title: Line | None = None
    space: SpaceName | None = None
    is_remembered: StrictBool = True


class ThreadChanges(RequestModel):
    title: Line | None = None
    is_pinned: StrictBool | None = None
    is_archived: StrictBool | None = None
    is_remembered: StrictBool | None = None
    space: SpaceName | None = None


class Thread(ResponseModel):
    id: uuid.UUID
    title: str
    space_id: uuid.UUID
    owner_id: uuid.UUID
    who: str
    model: str
    is_pinned: bool
    is_archived: bool
    is_remembered: bool
    created_at: datetime
    last_message_at: datetime


class RelatedThread(ResponseModel):
    """Another thread on the same subject; results are ordered by `score`."""

    thread: Thread
    score: float


class RelatedThreads(ResponseModel):
    threads: list[RelatedThread]


class Threads(ResponseModel):
    threads: list[Thread]
    next: str | None


class Passage(ResponseModel):
    """A recalled passage of an answer, with the number by which the answer cites it."""

    number: int
    exchange_id: uuid.UUID
    is_cited: bool
    similarity: float | None
    score: float
    strategy: str
    reason: str
    is_forgotten: bool
    who: str
    timestamp: datetime | None
    user_message: str
    assistant_message: str
    source_file: str


class Turn(ResponseModel):
    """A message and its answer. `error` explains why an answer failed, `memory` is the state of its exchange."""

    id: uuid.UUID
    thread_id: uuid.UUID
    position: int
    who: str
    message: str
    answer: str
    state: str = Field(
        description="queued, recalling, answering, complete, stopped, interrupted, failed or withdrawn",
        examples=["complete"],
    )
    finish_reason: str = Field(
        description=(
            "Why a complete answer ended: stop, length (limit of the model or of Cato) or content_filter; "
            "empty otherwise."
        ),
        examples=["stop"],
    )
    error: ErrorBody | None
    model: str
    usage: dict[str, Any]
    is_dummy: bool = Field(description="No model is connected; the answer is a placeholder.")
    exchange_id: uuid.UUID | None
    memory: str
    created_at: datetime | None
    completed_at: datetime | None
    sources: list[Passage]


class ThreadDetail(Thread):
    turns: list[Turn]
    next: int | None = Field(description="Pass as `after` for the next turns; null: no more turns.")


class AskRequest(RequestModel):
    message: Message
    stream: StrictBool = False


class NewThreadAskRequest(AskRequest):
    space: SpaceName | None = None
    is_remembered: StrictBool = True


class NewRecord(RequestModel):
    id: Annotated[Text, Field(min_length=1, max_length=255, examples=["device-fw-1"])]
    text: Annotated[Text, Field(min_length=1, examples=["The perimeter firewall."])]
    metadata: Metadata = {}
    vector: Annotated[list[StrictFloat], Field(min_length=1, max_length=10_000)] | None = None


class NewRecords(RequestModel):
    records: Annotated[list[NewRecord], Field(min_length=1, max_length=1000)]
    space: SpaceName | None = None


class StoredRecord(ResponseModel):
    id: str
    exchange_id: uuid.UUID


class StoredRecords(ResponseModel):
    records: list[StoredRecord]


class RecordQuery(RequestModel):
    """Query by text, vector or both. `filters` must match; records that match `prefer` come first."""

    text: Text | None = None
    vector: Annotated[list[StrictFloat], Field(min_length=1, max_length=10_000)] | None = None
    topK: Annotated[StrictInt, Field(ge=1, le=100)] = 8
    filters: Conditions | None = None
    prefer: Conditions | None = None
    space: SpaceName | None = None


class Record(ResponseModel):
    id: str
    exchange_id: uuid.UUID
    text: str
    metadata: dict[str, Any]
    similarity: float | None
    score: float


class Records(ResponseModel):
    records: list[Record]


class Deleted(ResponseModel):
    deleted: int

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
    kind: str = Field(description="own, group or team")
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
    """Search hits, best first."""

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


class NewThread(RequestModel):
    """A thread to create, by default in the personal space."""

    title: Line | None = None
    space: SpaceName | None = None
    is_remembered: StrictBool = True


class ThreadChanges(RequestModel):
    """Changes of a thread; omitted fields stay unchanged."""

    title: Line | None = None
    is_pinned: StrictBool | None = None
    is_archived: StrictBool | None = None
    is_remembered: StrictBool | None = None
    space: SpaceName | None = None


class Thread(ResponseModel):
    """A thread without its turns."""

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
    spoken_at: datetime


class RelatedThread(ResponseModel):
    """Another thread on the same subject; results are ordered by `score`."""

    thread: Thread
    score: float


class RelatedThreads(ResponseModel):
    """Related threads, best first."""

    threads: list[RelatedThread]


class Threads(ResponseModel):
    """A page of threads; pass `next` as `cursor` for the next page."""

    threads: list[Thread]
    next: str | None


class Passage(ResponseModel):
    """A recalled passage of an answer, with the number by which the answer cites it.

    Adjacent chunks of a document are one passage: `exchange_ids` has all of them, the best hit first.
    """

    number: int
    exchange_id: uuid.UUID
    exchange_ids: list[uuid.UUID]
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
    instructions: list[Instruction] = Field(description="Standing instructions in the prompt, as they are now.")


class ThreadDetail(Thread):
    """A thread with a page of its turns."""

    turns: list[Turn]
    next: int | None = Field(description="Pass as `after` for the next turns; null: no more turns.")


class AskRequest(RequestModel):
    """A message, and whether to stream the answer."""

    message: Message
    stream: StrictBool = False


class NewThreadAskRequest(AskRequest):
    """A message that creates a thread, by default in the personal space."""

    space: SpaceName | None = None
    is_remembered: StrictBool = True


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

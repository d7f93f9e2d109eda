"""The results of the tools, with the descriptions that a model reads."""

from __future__ import annotations

import uuid
from datetime import datetime

from pydantic import BaseModel, Field


class StatementFacts(BaseModel):
    """Facts about a statement beside its text."""

    kind: str = Field(description="decision, fact, preference or plan")
    topic: str
    state: str = Field(description="current, superseded or conflicting")
    first_said_at: datetime
    last_said_at: datetime
    sources: list[uuid.UUID] = Field(description="the exchanges that say it")


class Found(BaseModel):
    """One search result."""

    exchange_id: uuid.UUID
    said_at: datetime
    who: str = Field(description="author, or who added the document")
    source: str = Field(description="chat, import, note, knowledge, or the name of the document")
    statement: StatementFacts | None = Field(description="for knowledge: what is known about this statement")
    place: str = Field(description="page, slide or heading in a document")
    space: str = Field(description="who can read it: only the user, a group, or everyone")
    thread_id: uuid.UUID | None = Field(description="id of its conversation, for get_thread")
    document_id: uuid.UUID | None = Field(description="id of its document, for read_document")
    passage: int | None = Field(description="number of the passage in its document, for read_document")
    similarity: float | None = Field(description="cosine similarity, at most 1; null if only words matched")
    is_relevant: bool = Field(description="whether Cato would have recalled it for this query")
    message: str
    answer: str


class SearchResult(BaseModel):
    """Search results, best first; `note` is for the model that reads them."""

    note: str
    results: list[Found]


class TurnResult(BaseModel):
    """A turn of a thread."""

    said_at: datetime
    who: str
    message: str
    answer: str
    is_forgotten: bool = Field(description="whether it was forgotten; its text is omitted then")


class ThreadResult(BaseModel):
    """Turns of a thread, oldest first."""

    note: str
    thread_id: uuid.UUID
    title: str
    owner: str
    space: str
    turns_in_all: int
    earlier: int | None = Field(
        description="pass it as `before` to read the turns before these; null if there are none"
    )
    turns: list[TurnResult]


class PassageResult(BaseModel):
    """A passage of a document."""

    passage: int = Field(description="its number, from 0")
    place: str = Field(description="page, slide or heading")
    text: str
    is_forgotten: bool = Field(description="whether it was forgotten; its text is omitted then")


class DocumentResult(BaseModel):
    """Passages of a document, in order."""

    note: str
    document_id: uuid.UUID
    name: str
    owner: str
    space: str
    passages_in_all: int | None = Field(description="null while the document is still being read")
    next: int | None = Field(description="pass it as `passage` to read on; null at the end")
    passages: list[PassageResult]


class SpaceEntry(BaseModel):
    """A space of memory."""

    name: str = Field(description="for the parameter `space` of other tools")
    kind: str = Field(description="personal, group, project or team")
    audience: str = Field(description="who can read it")


class SpacesResult(BaseModel):
    """The spaces that the user can read."""

    spaces: list[SpaceEntry]


class ThreadEntry(BaseModel):
    """A thread in a list."""

    thread_id: uuid.UUID
    title: str
    owner: str
    space: str
    last_message_at: datetime


class ThreadsResult(BaseModel):
    """Threads, most recently active first."""

    note: str
    threads: list[ThreadEntry]
    next: str | None = Field(description="pass it as `cursor` for more; null at the end")


class DocumentEntry(BaseModel):
    """A document in a list."""

    document_id: uuid.UUID
    name: str
    owner: str
    space: str
    added_at: datetime
    is_readable: bool = Field(description="whether its text can be read and found already")


class DocumentsResult(BaseModel):
    """Documents, newest first."""

    note: str
    documents: list[DocumentEntry]
    next: str | None = Field(description="pass it as `cursor` for more; null at the end")


class KnowledgeEntry(StatementFacts):
    """A statement."""

    exchange_id: uuid.UUID
    statement: str
    space: str


class KnowledgeResult(BaseModel):
    """Statements, the latest first."""

    note: str
    statements: list[KnowledgeEntry]
    total: int


class AddResult(BaseModel):
    """The stored exchanges and their audience."""

    exchange_ids: list[uuid.UUID] = Field(description="several for a long text, which is split")
    audience: str = Field(description="who can read it now")


class ForgetResult(BaseModel):
    """Confirmation of a forgotten exchange."""

    exchange_id: uuid.UUID
    said: str


class AnswerResult(BaseModel):
    """The model's answer to a message."""

    note: str
    thread_id: uuid.UUID = Field(description="pass it to ask again in this conversation, or to get_thread")
    turn_id: uuid.UUID
    state: str = Field(description="complete, failed or stopped; answering or queued if it takes longer")
    answer: str
    error: str
    standing_instructions: list[str] = Field(
        description="what people have asked of every answer here; the model got them with the message"
    )

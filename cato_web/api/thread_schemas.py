"""Request and response models of threads, their turns, and asking."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StrictBool

from cato_web.api.fields import DataUrl, Line, SpaceName
from cato_web.api.schemas import ErrorBody, Instruction, Message, RequestModel, ResponseModel


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
    """A message with pictures, the model that answers it, and whether to stream the answer."""

    message: Message
    stream: StrictBool = False
    model: Annotated[Line | None, Field(description="By default the thread's.")] = None
    images: Annotated[
        list[DataUrl], Field(max_length=20, description="`data:` URLs in base64, up to `chat.max_attachments`.")
    ] = []


class NewThreadAskRequest(AskRequest):
    """A message that creates a thread, by default in the personal space."""

    space: SpaceName | None = None
    is_remembered: StrictBool = True


class StopResult(ResponseModel):
    """The turn whose answer was told to stop; null if no answer was running."""

    turn_id: uuid.UUID | None

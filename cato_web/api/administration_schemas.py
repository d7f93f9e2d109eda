"""Response models of the calls for administrators."""

from __future__ import annotations

import uuid
from datetime import datetime

from pydantic import Field

from cato_web.api.schemas import ResponseModel


class RecallLatency(ResponseModel):
    """Percentiles of the recall latency of the newest answers, in milliseconds."""

    answers: int
    median: int
    p90: int
    p99: int


class Stats(ResponseModel):
    """Counts of all spaces, without contents."""

    exchanges: int
    pending: int = Field(description="Exchanges that wait to be embedded.")
    failed: int = Field(description="Exchanges whose embedding failed.")
    to_erase: int = Field(description="Forgotten exchanges that are not erased yet.")
    by_source: dict[str, int]
    model: str = Field(description="The active embedding model.")
    dimension: int | None
    strategy: str
    enabled: bool = Field(description="Whether the vector store is enabled.")
    failed_answers: int = Field(description="In the last 30 days.")
    answers_without_recall: int = Field(description="Recall timed out; in the last 30 days.")
    recall_latency: RecallLatency | None = Field(description="null without answers.")


class Person(ResponseModel):
    """An account."""

    id: uuid.UUID
    name: str
    email: str
    role: str = Field(description="administrator or member")
    is_active: bool
    joined_at: datetime


class People(ResponseModel):
    """A page of accounts."""

    people: list[Person]
    next: str | None

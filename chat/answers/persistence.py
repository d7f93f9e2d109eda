"""Save running answers, complete turns, and store their exchanges."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from chat.answers.job import AnswerJob
from chat.attachments import store_documents
from chat.errors import NO_REASON, EndpointReason
from chat.llm.usage_counts import UsageCounts
from chat.models import Attachment, Thread, Turn
from chat.realtime.notifications import notify_link_changed
from memory import api as memory
from memory.api import RecallLogEntry, VectorStoreDisabledError


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """The state of a running answer to be saved."""

    turn_id: uuid.UUID
    attempt: int
    answer: str
    reasoning: str
    revision: int
    usage: UsageCounts | None = None
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """How an answer ended: `state` is complete, stopped, failed or interrupted.

    `tool_messages` are those of the turn if the model has called tools of the client, otherwise None. `usage` is what the
    endpoint reported, `uncounted_usage` what is to be counted, with estimates. `reason` is why the endpoint rejected the
    request, in its own words. `fallback` is as in `Turn`.
    """

    state: str
    answer: str
    reasoning: str = ""
    model: str = ""
    usage: dict[str, Any] | None = None
    finish_reason: str = ""
    error_code: str = ""
    error: str = ""
    reason: EndpointReason = NO_REASON
    images_dropped: bool = False
    tool_messages: list[dict[str, Any]] | None = None
    uncounted_usage: UsageCounts | None = None
    fallback: dict[str, str] = field(default_factory=dict)
    is_refusal: bool = False
    system_fingerprint: str = ""


@transaction.atomic
def save_checkpoints(answers: Iterable[AnswerCheckpoint]) -> tuple[set[uuid.UUID], set[uuid.UUID]]:
    """Save running answers; return the turns with a stop request, and those whose lease is lost."""
    answers = list(answers)
    now = timezone.now()
    lost_leases = set()
    for checkpoint in answers:
        leased = Turn.objects.filter(id=checkpoint.turn_id, attempt=checkpoint.attempt, state__in=Turn.RUNNING_STATES)
        if not leased.update(
            answer=checkpoint.answer,
            is_refusal=checkpoint.is_refusal,
            reasoning=checkpoint.reasoning,
            revision=checkpoint.revision,
            uncounted_usage=checkpoint.usage and checkpoint.usage.as_json(),
            heartbeat_at=now,
        ):
            lost_leases.add(checkpoint.turn_id)
    ids = [checkpoint.turn_id for checkpoint in answers]
    stops = set(Turn.objects.filter(id__in=ids, stop_requested=True).values_list("id", flat=True))
    return stops, lost_leases


class _OutdatedJobError(Exception):
    """The lease of the turn is lost, or its thread was changed by a person since the job was read."""


@dataclass(frozen=True, slots=True)
class CompletedTurn:
    """A turn whose answer has ended, as its row is now; `is_stored`: its exchange is new and waits to be embedded."""

    turn: Turn
    is_stored: bool


def complete_turn(
    job: AnswerJob, outcome: AnswerOutcome, revision: int, *, recalled_ids: Sequence[uuid.UUID] | None = None
) -> CompletedTurn | None:
    """Complete the turn and store its exchange in the same transaction; return None if the lease is lost.

    `recalled_ids` are the exchanges that were recalled; None: those of the recall log.
    """
    current: AnswerJob | None = job
    while current is not None:
        try:
            with transaction.atomic():
                return _complete(current, outcome, revision, recalled_ids)
        except _OutdatedJobError:
            current = _reload(job)
    return None


def _complete(
    job: AnswerJob, outcome: AnswerOutcome, revision: int, recalled_ids: Sequence[uuid.UUID] | None
) -> CompletedTurn:
    turn, thread, now = job.turn, job.turn.thread, timezone.now()
    memory_fields = {}
    # A turn that waits for tools is remembered with its final answer.
    if job.endpoint is not None and outcome.answer.strip() and outcome.tool_messages is None:
        memory_fields = _remember(turn, outcome.answer, recalled_ids, job.attachments)
    fields = {
        "state": outcome.state,
        "answer": outcome.answer,
        "is_refusal": outcome.is_refusal,
        "reasoning": outcome.reasoning,
        "model": outcome.model,
        "system_fingerprint": outcome.system_fingerprint,
        "is_dummy": job.endpoint is None,
        "usage": outcome.usage or {},
        "uncounted_usage": outcome.uncounted_usage and outcome.uncounted_usage.as_json(),
        "finish_reason": outcome.finish_reason,
        "error_code": outcome.error_code,
        "error": outcome.error[:300],
        "endpoint_reason": outcome.reason.as_json(),
        "fallback": outcome.fallback,
        "images_dropped": outcome.images_dropped,
        "revision": revision,
        "completed_at": now,
        **({} if outcome.tool_messages is None else {"tool_messages": outcome.tool_messages}),
        **memory_fields,
    }
    leased = Turn.objects.filter(id=turn.id, attempt=job.attempt, state__in=Turn.RUNNING_STATES)
    # The thread can change while its answer is written: what the exchange and the link of the thread depend on is
    # compared in the statement that updates it.
    current = Thread.objects.filter(
        id=turn.thread_id, is_remembered=thread.is_remembered, space_id=thread.space_id, title=thread.title
    )
    if not current.update(changed_at=now) or not leased.update(**fields):
        raise _OutdatedJobError
    notify_link_changed(thread, is_answering=False)
    completed = copy(turn)
    for name, value in fields.items():
        setattr(completed, name, value)
    if outcome.state == Turn.State.STOPPED:
        # It was requested after the job was read.
        completed.stopped_by = Turn.objects.select_related("stopped_by").get(id=turn.id).stopped_by
    return CompletedTurn(completed, is_stored=turn.exchange_id is None and completed.exchange_id is not None)


def _reload(job: AnswerJob) -> AnswerJob | None:
    """Return the job with its turn and thread as they are now; None if the lease is lost."""
    leased = Turn.objects.filter(id=job.turn_id, attempt=job.attempt, state__in=Turn.RUNNING_STATES)
    turn = leased.select_related("author", "session", "thread__space").first()
    return None if turn is None else replace(job, turn=turn)


def store_exchange(turn: Turn) -> None:
    """Store the exchange of an answered turn in memory, if its thread is saved to memory.

    If the vector store is disabled, mark the turn as missing instead.
    """
    if not turn.is_dummy and (fields := _remember(turn, turn.answer, None, turn.attachments.all())):
        Turn.objects.filter(id=turn.id).update(**fields)


def _remember(
    turn: Turn, answer: str, recalled_ids: Sequence[uuid.UUID] | None, attachments: Iterable[Attachment]
) -> dict[str, Any]:
    """Store the exchange and the attached documents of a turn whose thread is saved to memory.

    Return the fields of the turn that say so.
    """
    if not turn.thread.is_remembered:
        return {}
    if recalled_ids is None:
        log = RecallLogEntry.objects.filter(turn_id=turn.id).order_by("rank", "id")
        recalled_ids = list(log.values_list("exchange_id", flat=True))
    try:
        exchange = memory.remember(
            memory.NewExchange(
                space=turn.thread.space,
                owner_id=turn.author_id,
                owner=turn.author,
                user_message=turn.message,
                assistant_message=answer,
                source="chat",
                timestamp=turn.created_at,
                thread_id=turn.thread_id,
                session_id=turn.session_id,
                turn_id=turn.id,
                is_first=turn.exchange_id is None,
                thread_continuation_seq=turn.session.seq,
                prior_exchange_ids=recalled_ids,
            )
        )
    except VectorStoreDisabledError:
        return {"is_missing_in_memory": True}
    store_documents(turn, attachments)
    return {"exchange_id": exchange.id, "is_missing_in_memory": False}

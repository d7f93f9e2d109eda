"""The database side of an answer: load its job, recall, save checkpoints, complete the turn, store the exchange."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat import access
from chat.llm import endpoint
from chat.llm.client import Message
from chat.llm.endpoint import ModelEndpoint
from chat.llm.prompts import PromptHistory, build_prompt, fit_history, history_token_budget
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.rendering.citations import Citations
from memory import api as memory
from memory.api import RecallFilter, SearchResults, VectorStoreDisabledError, build_prompt_context, group_adjacent

log = logging.getLogger(__name__)

_MAX_TURNS = 500
# The author may no longer read the thread, or the API token is no longer valid.
ACCESS_LOST = "access_lost"
ACCESS_LOST_TEXT = gettext_noop("Stopped: the person who asked no longer has access.")


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """A turn to be answered; `partial_answer` and `reasoning` are not empty if it is resumed."""

    turn_id: uuid.UUID
    thread_id: uuid.UUID
    author_id: uuid.UUID
    attempt: int
    partial_answer: str
    reasoning: str
    revision: int
    endpoint: ModelEndpoint | None
    model: str
    is_remembered: bool


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """The results of the recall for a turn, and the history of its prompt, None if the recall took too long."""

    search_results: SearchResults
    history: PromptHistory | None = None


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer after recall: the prompt, the revision of its row, and the passages it can cite."""

    messages: list[Message]
    revision: int
    citations: Citations


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """The state of a running answer to be saved."""

    turn_id: uuid.UUID
    attempt: int
    answer: str
    reasoning: str
    revision: int


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """How an answer ended: `state` is complete, stopped, failed or interrupted."""

    state: str
    answer: str
    reasoning: str = ""
    model: str = ""
    usage: dict[str, int] | None = None
    finish_reason: str = ""
    error_code: str = ""
    error: str = ""
    images_dropped: bool = False


def load_job(turn_id: uuid.UUID) -> AnswerJob | None:
    """Return the job for this turn; None if it does not wait for an answer."""
    turn = Turn.objects.select_related("thread").filter(id=turn_id, state=Turn.State.RECALLING).first()
    if turn is None:
        return None
    return AnswerJob(
        turn_id=turn.id,
        thread_id=turn.thread_id,
        author_id=turn.author_id,
        attempt=turn.attempt,
        partial_answer=turn.answer,
        reasoning=turn.reasoning,
        revision=turn.revision,
        endpoint=endpoint.current(),
        model=turn.requested_model or turn.thread.model,
        is_remembered=turn.thread.is_remembered,
    )


@transaction.atomic
def end_without_access(turn_id: uuid.UUID) -> bool:
    """End a turn whose author lost access since it was posted, before recall; return whether it was ended."""
    if turn_id not in access.turns_without_access([turn_id]):
        return False
    ended = Turn.objects.filter(id=turn_id, state=Turn.State.RECALLING).update(
        state=Turn.State.STOPPED,
        error_code=ACCESS_LOST,
        error=_(ACCESS_LOST_TEXT),
        revision=F("revision") + 1,
        completed_at=timezone.now(),
    )
    return bool(ended)


def recall_for_turn(turn_id: uuid.UUID) -> TurnRecall:
    """Recall for this turn from the spaces that all readers of its thread may read."""
    turn = Turn.objects.select_related("thread").get(id=turn_id)
    earlier = _earlier_turns(turn)
    history = _history_of(turn, earlier)
    search_results = memory.recall(
        [*(t.message for t in earlier), turn.message],
        spaces=memory.space_ids_shared_by_all_readers(turn.thread.space_id),
        exclude=history.exchange_ids | ({turn.effective_exchange_id} if turn.effective_exchange_id else set()),
        conversation_length=history.length,
        keep_query=turn.thread.is_remembered,
        person_id=turn.author_id,
        filters=RecallFilter.from_json(turn.thread.recall_filter).filter(),
    )
    return TurnRecall(search_results, history)


@transaction.atomic
def prepare_answer(
    turn_id: uuid.UUID, attempt: int, recalled: TurnRecall, recall_ms: int, *, is_dummy: bool = False
) -> PreparedAnswer | None:
    """Save the recalled exchanges and build the prompt; return None if the lease of the turn is lost.

    What was forgotten since the recall is left out. `is_dummy`: the answer is a placeholder, which is not remembered
    even if this process dies before it is complete.
    """
    turn = Turn.objects.select_related("thread").get(id=turn_id)
    updated = Turn.objects.filter(id=turn_id, attempt=attempt, state=Turn.State.RECALLING).update(
        state=Turn.State.ANSWERING,
        revision=F("revision") + 1,
        recall_note=recalled.search_results.note,
        recall_ms=recall_ms,
        finish_reason="",
        is_dummy=is_dummy,
        heartbeat_at=timezone.now(),
    )
    if not updated:
        return None
    history = recalled.history or _history_of(turn, _earlier_turns(turn))
    hits = recalled.search_results.results
    if forgotten := memory.forgotten_ids(history.exchange_ids.union(hit.exchange.id for hit in hits)):
        history = history.without(forgotten)
        hits = tuple(hit for hit in hits if hit.exchange.id not in forgotten)
    memory.log_recall(turn_id, hits)
    conf = settings.CATO.vector_store
    prompt_context = build_prompt_context(hits, max_tokens=conf.context_max_tokens) if conf.inject_context else ""
    prompt = build_prompt(history=history, prompt_context=prompt_context, turn=turn, partial_answer=turn.answer)
    return PreparedAnswer(
        prompt, turn.revision + 1, Citations(turn_id, len(group_adjacent(hits)) if prompt_context else 0)
    )


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
            reasoning=checkpoint.reasoning,
            revision=checkpoint.revision,
            heartbeat_at=now,
        ):
            lost_leases.add(checkpoint.turn_id)
    ids = [checkpoint.turn_id for checkpoint in answers]
    stops = set(Turn.objects.filter(id__in=ids, stop_requested=True).values_list("id", flat=True))
    return stops, lost_leases


@transaction.atomic
def complete_turn(job: AnswerJob, outcome: AnswerOutcome, revision: int) -> bool:
    """Complete the turn and store its exchange in the same transaction; return False if the lease is lost."""
    completed = Turn.objects.filter(id=job.turn_id, attempt=job.attempt, state__in=Turn.RUNNING_STATES).update(
        state=outcome.state,
        answer=outcome.answer,
        reasoning=outcome.reasoning,
        model=outcome.model,
        is_dummy=job.endpoint is None,
        usage=outcome.usage or {},
        finish_reason=outcome.finish_reason,
        error_code=outcome.error_code,
        error=outcome.error[:300],
        images_dropped=outcome.images_dropped,
        revision=revision,
        completed_at=timezone.now(),
    )
    if completed:
        Thread.objects.filter(id=job.thread_id).update(changed_at=timezone.now())
        notify_thread_changed(job.thread_id)
    if completed and job.endpoint is not None and outcome.answer.strip():
        store_exchange(Turn.objects.select_related("thread__space", "session").get(id=job.turn_id))
    return bool(completed)


def store_exchange(turn: Turn) -> None:
    """Store the exchange of an answered turn in memory, if its thread is saved to memory.

    If the vector store is disabled, mark the turn as missing instead.
    """
    if not turn.thread.is_remembered or turn.is_dummy:
        return
    recalled = memory.recalled_for([turn.id], spaces=frozenset()).get(turn.id, [])
    try:
        with transaction.atomic():
            exchange = memory.remember(
                memory.NewExchange(
                    space=turn.thread.space,
                    owner_id=turn.author_id,
                    user_message=turn.message,
                    assistant_message=turn.answer,
                    source="chat",
                    timestamp=turn.created_at,
                    thread_id=turn.thread_id,
                    session_id=turn.session_id,
                    turn_id=turn.id,
                    thread_continuation_seq=turn.session.seq,
                    prior_exchange_ids=[item.exchange_id for item in recalled],
                )
            )
    except VectorStoreDisabledError:
        Turn.objects.filter(id=turn.id).update(is_missing_in_memory=True)
        return
    Turn.objects.filter(id=turn.id).update(exchange_id=exchange.id, is_missing_in_memory=False)


def _history_of(turn: Turn, earlier: list[Turn]) -> PromptHistory:
    return fit_history(earlier, max_tokens=history_token_budget(turn.message, turn.thread.instructions))


def _earlier_turns(turn: Turn) -> list[Turn]:
    """Return the answered, not forgotten turns of the active branch before this one, oldest first."""
    rows = (
        Turn.objects.active_branch()
        .prefetch_related("images")
        .filter(thread_id=turn.thread_id, position__lt=turn.position)
        .exclude(answer="")
        .exclude(is_dummy=True)
        .order_by("-position")[:_MAX_TURNS]
    )
    turns = list(rows)[::-1]
    states = memory.memory_states(t.effective_exchange_id for t in turns if t.effective_exchange_id)
    return [t for t in turns if states.get(t.effective_exchange_id or uuid.UUID(int=0)) != "forgotten"]

"""Recall for a turn, from the spaces that its audience may read and the endpoint may receive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from chat.answers.history import earlier_turns, history_of
from chat.answers.job import AnswerJob
from chat.instructions.editing import can_be_detected
from chat.llm.prompts import PromptHistory
from chat.models import Turn
from chat.turns.corrections import can_be_correction
from chat.turns.digest_scope import DigestScope
from memory import api as memory
from memory.api import (
    RecallFilter,
    SearchResults,
    SpaceIds,
)

_AWAY = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """The results of the recall for a turn, and the history of its prompt, None if the recall took too long.

    `withheld` counts what would have been recalled from spaces whose text the endpoint may not receive; None: unknown.
    """

    search_results: SearchResults
    history: PromptHistory | None = None
    withheld: int | None = 0


def recall_for_turn(job: AnswerJob) -> TurnRecall:
    """Recall for this turn from the spaces that all readers of its thread may read and the endpoint may receive."""
    turn = job.turn
    earlier = earlier_turns(turn)
    history = history_of(turn, earlier)
    results = _recall(
        job,
        earlier,
        history,
        job.permitted,
        detect_instruction=job.endpoint is not None and can_be_detected(turn),
        detect_correction=job.endpoint is not None and can_be_correction(turn, earlier),
    )
    return TurnRecall(results, history)


def count_withheld(job: AnswerJob) -> int:
    """Return how much would be recalled from the spaces whose text the endpoint may not receive."""
    earlier = earlier_turns(job.turn)
    results = _recall(job, earlier, history_of(job.turn, earlier), job.audience - job.permitted)
    return len(results.results)


def _recall(
    job: AnswerJob,
    earlier: list[Turn],
    history: PromptHistory,
    spaces: SpaceIds,
    *,
    detect_instruction: bool = False,
    detect_correction: bool = False,
) -> SearchResults:
    turn = job.turn
    scope = None if turn.digest_scope is None else DigestScope.from_json(turn.digest_scope)
    return memory.recall(
        [*(t.message for t in earlier), turn.message],
        spaces=spaces,
        exclude=history.exchange_ids | ({turn.effective_exchange_id} if turn.effective_exchange_id else set()),
        conversation_length=history.length,
        keep_query=turn.thread.is_remembered,
        text_space=turn.thread.space_id,
        person_id=turn.author_id,
        filters=RecallFilter.from_json(turn.thread.recall_filter).filter(),
        detect_instruction=detect_instruction,
        detect_correction=detect_correction,
        preferred=memory.preferred_space_id(turn.thread.space),
        get_last_visit=lambda: _last_visit(turn),
        period=None if scope is None else scope.period,
        except_thread=None if scope is None else turn.thread_id,
    )


def _last_visit(turn: Turn) -> datetime | None:
    """Return when the author of the turn wrote before they were away for some hours."""
    earlier = Turn.objects.filter(author_id=turn.author_id, created_at__lt=timezone.now() - _AWAY)
    # Nobody was there for the message of a digest.
    earlier = earlier.filter(digest_scope__isnull=True)
    return earlier.order_by("-created_at").values_list("created_at", flat=True).first()

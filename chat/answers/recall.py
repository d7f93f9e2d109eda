"""Before the model is asked: recall for a turn, check what was recalled, and build the prompt."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from chat.answers.job import AnswerJob
from chat.llm.client import Message
from chat.llm.prompts import PromptHistory, build_prompt, fit_history, history_token_budget
from chat.models import Thread, ThreadSession, Turn, load_images
from chat.rendering.citations import Citations
from chat.rows.recall import session_title
from memory import api as memory
from memory.api import (
    Exchange,
    Hit,
    RecalledItem,
    RecallFilter,
    SearchResults,
    SpaceIds,
    build_prompt_context,
    group_adjacent,
)

_MAX_TURNS = 500


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """The results of the recall for a turn, and the history of its prompt, None if the recall took too long."""

    search_results: SearchResults
    history: PromptHistory | None = None


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer after recall: the prompt, the revision and panel of its row, and the passages it can cite.

    `titles` are those of the threads of what was recalled, as `thread_titles` returns them.
    """

    messages: list[Message]
    revision: int
    citations: Citations
    note: str = ""
    recalled: tuple[RecalledItem, ...] = ()
    titles: dict[uuid.UUID, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Check:
    """The present state of exchanges: which are forgotten, which the audience can find, and their threads' titles."""

    forgotten_ids: frozenset[uuid.UUID]
    findable_ids: frozenset[uuid.UUID]
    titles: dict[uuid.UUID, str]


def recall_for_turn(job: AnswerJob) -> TurnRecall:
    """Recall for this turn from the spaces that all readers of its thread may read."""
    turn = job.turn
    earlier = _earlier_turns(turn)
    history = _history_of(turn, earlier)
    search_results = memory.recall(
        [*(t.message for t in earlier), turn.message],
        spaces=job.audience,
        exclude=history.exchange_ids | ({turn.effective_exchange_id} if turn.effective_exchange_id else set()),
        conversation_length=history.length,
        keep_query=turn.thread.is_remembered,
        person_id=turn.author_id,
        filters=RecallFilter.from_json(turn.thread.recall_filter).filter(),
    )
    return TurnRecall(search_results, history)


@transaction.atomic
def prepare_answer(job: AnswerJob, recalled: TurnRecall, recall_ms: int) -> PreparedAnswer | None:
    """Save the recalled exchanges and build the prompt; return None if the lease of the turn is lost.

    What was forgotten, hidden or moved since the recall is left out. Without an endpoint the answer is a placeholder,
    which is not remembered even if this process dies before it is complete.
    """
    turn = job.turn
    revision = turn.revision + 1
    updated = Turn.objects.filter(id=turn.id, attempt=job.attempt, state=Turn.State.RECALLING).update(
        state=Turn.State.ANSWERING,
        revision=revision,
        recall_note=recalled.search_results.note,
        recall_ms=recall_ms,
        finish_reason="",
        is_dummy=job.endpoint is None,
        heartbeat_at=timezone.now(),
    )
    if not updated:
        return None
    history = recalled.history or _history_of(turn, _earlier_turns(turn))
    # Read again after the recall, in the transaction that saves what was recalled.
    check = _check(history.exchange_ids, recalled.search_results.results, job.audience)
    history = history.without(check.forgotten_ids)
    hits = tuple(hit for hit in recalled.search_results.results if hit.exchange.id in check.findable_ids)
    items = memory.log_recall(turn.id, hits, is_first=job.attempt == 1)
    conf = settings.CATO.vector_store
    prompt_context = build_prompt_context(hits, max_tokens=conf.context_max_tokens) if conf.inject_context else ""
    return PreparedAnswer(
        build_prompt(
            history=history,
            prompt_context=prompt_context,
            turn=turn,
            images=job.images,
            partial_answer=turn.answer,
        ),
        revision,
        Citations(turn.id, len(group_adjacent(hits)) if prompt_context else 0),
        recalled.search_results.note,
        tuple(items),
        check.titles,
    )


def _check(exchange_ids: Iterable[uuid.UUID], hits: Iterable[Hit], audience: SpaceIds) -> _Check:
    """Check the exchanges of the history and the hits, with one statement, which also reads the titles of the hits."""
    ids = {*exchange_ids, *(hit.exchange.id for hit in hits)}
    rows = Exchange.objects.filter(id__in=ids).annotate(
        title=Subquery(Thread.objects.filter(id=OuterRef("thread_id")).values("title")),
        seq=Subquery(ThreadSession.objects.filter(id=OuterRef("session_id")).values("seq")),
    )
    columns = ("id", "space_id", "forgotten_at", "is_inactive", "thread_id", "session_id", "title", "seq")
    forgotten, findable, titles = set(), set(), dict[uuid.UUID, str]()
    for row in rows.values_list(*columns, named=True) if ids else ():
        if row.forgotten_at is not None:
            forgotten.add(row.id)
        elif not row.is_inactive and row.space_id in audience:
            findable.add(row.id)
        if row.thread_id and row.title is not None:
            titles[row.thread_id] = row.title
            if row.seq:
                titles[row.session_id] = session_title(row.title, row.seq)
    return _Check(frozenset(forgotten), frozenset(findable), titles)


def _history_of(turn: Turn, earlier: list[Turn]) -> PromptHistory:
    return fit_history(earlier, max_tokens=history_token_budget(turn.message, turn.thread.instructions))


def _earlier_turns(turn: Turn) -> list[Turn]:
    """Return the answered, not forgotten turns of the active branch before this one, oldest first."""
    exchange_id = Coalesce(OuterRef("exchange_id"), OuterRef("copied_exchange_id"))
    forgotten = Exchange.objects.filter(id=exchange_id).exclude(forgotten_at=None)
    rows = (
        Turn.objects.active_branch()
        .with_image_marks()
        .filter(~Exists(forgotten), thread_id=turn.thread_id, position__lt=turn.position)
        .exclude(answer="")
        .exclude(is_dummy=True)
        .order_by("-position")[:_MAX_TURNS]
    )
    turns = list(rows)[::-1]
    load_images(turns)
    return turns

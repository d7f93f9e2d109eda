"""Before the model is asked: recall for a turn, check what was recalled, and build the prompt."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from chat.answers.job import AnswerJob
from chat.instructions.applying import AppliedInstruction, applicable, choose, prompt_text, read_all_applicable
from chat.instructions.editing import can_be_detected, suggest
from chat.llm.client import Message
from chat.llm.prompts import PromptHistory, build_prompt, fit_history, history_token_budget, tool_text
from chat.models import Attachment, Endpoint, Thread, ThreadSession, Turn, load_attachments
from chat.rendering.citations import Citations
from chat.rows.sources import citations_of
from chat.rows.thread_titles import session_title
from chat.rows.turns import TurnDetails
from memory import api as memory
from memory.api import (
    Exchange,
    Hit,
    RecalledPassage,
    RecallFilter,
    SearchResults,
    SpaceIds,
    build_attached_context,
    build_prompt_context,
)

_MAX_TURNS = 500
_AWAY = timedelta(hours=4)
# Instead of the number of a session, for the rows of instructions among those of exchanges.
_INSTRUCTION = -1


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """The results of the recall for a turn, and the history of its prompt, None if the recall took too long.

    `withheld` counts what would have been recalled from spaces whose text the endpoint may not receive; None: unknown.
    """

    search_results: SearchResults
    history: PromptHistory | None = None
    withheld: int | None = 0


class PolicyChangedError(Exception):
    """The endpoint or its data policy was changed since the job was built."""


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer after recall: the prompt, the revision and panel of its row, and the passages it can cite.

    `titles` are those of the threads of what was recalled, as `thread_titles` returns them. `instructions` are those in
    the prompt; `has_instruction`: the message was detected as one itself. `history_ids` are the exchanges of the history
    in the prompt. `withheld` is as in `Turn`. `space_ids` are the spaces of all texts in the prompt.
    """

    messages: list[Message]
    revision: int
    citations: Citations
    note: str = ""
    recalled: tuple[RecalledPassage, ...] = ()
    titles: dict[uuid.UUID, str] = field(default_factory=dict)
    instructions: tuple[AppliedInstruction, ...] = ()
    has_instruction: bool = False
    history_ids: frozenset[uuid.UUID] = frozenset()
    withheld: dict[str, Any] = field(default_factory=dict)
    space_ids: SpaceIds = frozenset()


@dataclass(frozen=True, slots=True)
class _Check:
    """The present state of exchanges: which are forgotten, which the audience can find, and their threads' titles.

    `instructions` are those of the prompt as it is now, `withheld_instructions` counts those that the endpoint may not
    receive.
    """

    forgotten_ids: frozenset[uuid.UUID]
    findable_ids: frozenset[uuid.UUID]
    titles: dict[uuid.UUID, str]
    instructions: tuple[AppliedInstruction, ...]
    withheld_instructions: int = 0


def recall_for_turn(job: AnswerJob) -> TurnRecall:
    """Recall for this turn from the spaces that all readers of its thread may read and the endpoint may receive."""
    turn = job.turn
    earlier = _earlier_turns(turn)
    history = _history_of(turn, earlier)
    can_instruct = job.endpoint is not None and can_be_detected(turn)
    return TurnRecall(_recall(job, earlier, history, job.permitted, can_instruct=can_instruct), history)


def count_withheld(job: AnswerJob) -> int:
    """Return how much would be recalled from the spaces whose text the endpoint may not receive."""
    earlier = _earlier_turns(job.turn)
    results = _recall(job, earlier, _history_of(job.turn, earlier), job.audience - job.permitted)
    return len(results.results)


def _recall(
    job: AnswerJob, earlier: list[Turn], history: PromptHistory, spaces: SpaceIds, *, can_instruct: bool = False
) -> SearchResults:
    turn = job.turn
    return memory.recall(
        [*(t.message for t in earlier), turn.message],
        spaces=spaces,
        exclude=history.exchange_ids | ({turn.effective_exchange_id} if turn.effective_exchange_id else set()),
        conversation_length=history.length,
        keep_query=turn.thread.is_remembered,
        person_id=turn.author_id,
        filters=RecallFilter.from_json(turn.thread.recall_filter).filter(),
        detect_instruction=can_instruct,
        preferred=memory.preferred_space_id(turn.thread.space),
        get_last_visit=lambda: _last_visit(turn),
    )


def prepare_answer(job: AnswerJob, recalled: TurnRecall, recall_ms: int) -> PreparedAnswer | None:
    """Save the recalled exchanges and build the prompt; return None if the lease of the turn is lost.

    What was forgotten, hidden or moved since the recall is left out. Without an endpoint the answer is a placeholder,
    which is not remembered even if this process dies before it is complete. Raises PolicyChangedError.
    """
    history = recalled.history or _history_of(job.turn, _earlier_turns(job.turn))
    # Choosing passages of long files takes a while, so it is done before the transaction.
    return _prepare(job, recalled, recall_ms, history, _attached_context(job, history))


@transaction.atomic
def _prepare(
    job: AnswerJob, recalled: TurnRecall, recall_ms: int, history: PromptHistory, attached_context: str
) -> PreparedAnswer | None:
    turn, results = job.turn, recalled.search_results
    revision = turn.revision + 1
    # Read again after the recall, in the transaction that saves what was recalled.
    check = _check(job, history.exchange_ids, results.results)
    withheld = _withheld(job, recalled.withheld, check.withheld_instructions)
    has_instruction = turn.has_instruction
    if results.instruction is not None and suggest(turn, results.instruction):
        has_instruction = True
    leased = Turn.objects.filter(id=turn.id, attempt=job.attempt, state=Turn.State.RECALLING)
    # What the endpoint may receive is decided by its row at this moment, which costs no statement.
    updated = leased.filter(_is_unchanged(job)).update(
        state=Turn.State.ANSWERING,
        revision=revision,
        recall_note=results.note,
        recall_ms=recall_ms,
        finish_reason="",
        is_dummy=job.endpoint is None,
        memory_searches=[],
        tool_uses=[],
        applied_instructions=[str(row.id) for row in check.instructions],
        has_instruction=has_instruction,
        withheld=withheld,
        fallback={},
        heartbeat_at=timezone.now(),
    )
    if not updated:
        if leased.exists():
            raise PolicyChangedError
        transaction.set_rollback(True)
        return None
    if check.forgotten_ids & history.exchange_ids:
        history = history.without(check.forgotten_ids)
        attached_context = _attached_context(job, history)
    standing = prompt_text(check.instructions)
    if standing or attached_context:
        history = _fit(turn, history, standing, attached_context)
    hits = tuple(hit for hit in results.results if hit.exchange.id in check.findable_ids)
    passages = memory.log_recall(turn.id, hits, is_first=job.attempt == 1)
    conf = settings.CATO.vector_store
    prompt_context = build_prompt_context(hits, max_tokens=conf.context_max_tokens) if conf.inject_context else ""
    return PreparedAnswer(
        build_prompt(
            history=history,
            prompt_context=prompt_context,
            turn=turn,
            attachments=job.attachments,
            attached_context=attached_context,
            standing=standing,
            partial_answer=turn.answer,
        ),
        revision,
        citations_of(turn.id, passages, check.titles, is_quoted=bool(prompt_context)),
        results.note,
        tuple(passages),
        check.titles,
        check.instructions,
        has_instruction,
        history.exchange_ids,
        withheld,
        frozenset(
            {
                turn.thread.space_id,
                *(hit.exchange.space_id for hit in hits),
                *(row.space_id for row in check.instructions),
            }
        ),
    )


def _is_unchanged(job: AnswerJob) -> Q:
    """Return the condition that the row of the job's endpoint is still the one from which the job was built."""
    if job.endpoint is None:
        return Q()
    row = Endpoint.objects.filter(name=job.endpoint.name)
    changed_at = job.endpoint.changed_at
    return Q(~Exists(row)) if changed_at is None else Q(Exists(row.filter(changed_at=changed_at)))


def _withheld(job: AnswerJob, sources: int | None, instructions: int) -> dict[str, Any]:
    """Return what a turn stores of what was not sent; `sources` None: an unknown number, if there can be any."""
    if job.endpoint is None or (sources == 0 and not instructions):
        return {}
    return {"of": job.endpoint.label, "sources": sources, "instructions": instructions}


def prepared_turn(job: AnswerJob, prepared: PreparedAnswer) -> tuple[Turn, TurnDetails]:
    """Return the turn as its row is after the preparation, with the details that pages show of it."""
    turn = copy(job.turn)
    turn.state, turn.revision, turn.recall_note = Turn.State.ANSWERING, prepared.revision, prepared.note
    turn.memory_searches, turn.tool_uses, turn.fallback = [], [], {}
    turn.applied_instructions = [str(row.id) for row in prepared.instructions]
    turn.has_instruction, turn.withheld = prepared.has_instruction, prepared.withheld
    instructions = {str(row.id): row for row in prepared.instructions}
    details = TurnDetails(
        attachments=job.attachments, recalled=prepared.recalled, titles=prepared.titles, instructions=instructions
    )
    return turn, details


def _check(job: AnswerJob, exchange_ids: Iterable[uuid.UUID], hits: Iterable[Hit]) -> _Check:
    """Check the exchanges of the history and the hits, with one statement.

    The statement also reads the titles of the hits, and the instructions that apply in the turn's thread.
    """
    turn, permitted = job.turn, job.permitted
    ids = {*exchange_ids, *(hit.exchange.id for hit in hits)}
    if not ids:
        return _Check(frozenset(), frozenset(), {}, *_choose(job, read_all_applicable(turn.thread, besides=turn.id)))
    columns = ("id", "space_id", "forgotten_at", "is_inactive", "thread_id", "session_id", "title", "seq")
    exchanges = Exchange.objects.filter(id__in=ids).annotate(
        title=Subquery(Thread.objects.filter(id=OuterRef("thread_id")).values("title")),
        seq=Subquery(ThreadSession.objects.filter(id=OuterRef("session_id")).values("seq")),
    )
    # The same columns for an instruction: its date and its text, and no session for its place.
    instructions = applicable(turn.thread, besides=turn.id).annotate(
        is_inactive=Value(False),
        in_thread=Value(None, output_field=UUIDField()),
        in_session=Value(None, output_field=UUIDField()),
        place=Value(_INSTRUCTION),
    )
    rows = exchanges.values_list(*columns).union(
        instructions.values_list(
            "id", "space_id", "created_at", "is_inactive", "in_thread", "in_session", "text", "place"
        ),
        all=True,
    )
    forgotten, findable, titles = set(), set(), dict[uuid.UUID, str]()
    applying = []
    for id, space_id, at, is_inactive, thread_id, session_id, title, seq in rows:
        if seq == _INSTRUCTION:
            applying.append(AppliedInstruction(id, space_id, title, at))
            continue
        if at is not None:
            forgotten.add(id)
        elif not is_inactive and space_id in permitted:
            findable.add(id)
        if thread_id and title is not None:
            titles[thread_id] = title
            if seq:
                titles[session_id] = session_title(title, seq)
    return _Check(frozenset(forgotten), frozenset(findable), titles, *_choose(job, applying))


def _choose(job: AnswerJob, applying: list[AppliedInstruction]) -> tuple[tuple[AppliedInstruction, ...], int]:
    """Return the instructions for the prompt, and how many the endpoint may not receive."""
    permitted = job.permitted_among(frozenset(row.space_id for row in applying))
    sent = [row for row in applying if row.space_id in permitted]
    return choose(sent, space_id=job.turn.thread.space_id), len(applying) - len(sent)


def _attached_context(job: AnswerJob, history: PromptHistory) -> str:
    """Return the texts of the documents attached to this message and those of the history; the newest are the first.

    They take at most half of the history's tokens.
    """
    attachments = [*job.attachments, *(row for turn in reversed(history.turns) for row in turn.shown_attachments)]
    documents = {row.id: row for row in attachments if not row.is_image}
    if not documents:
        return ""
    texts = dict(Attachment.objects.filter(id__in=documents).exclude(text="").values_list("id", "text"))
    return build_attached_context(
        [(row.name, texts[row.id]) for row in documents.values() if row.id in texts],
        question=job.turn.message,
        max_tokens=_budget(job.turn) // 2,
    )


def _fit(turn: Turn, history: PromptHistory, standing: str, attached: str) -> PromptHistory:
    """Return the history without the oldest turns that no longer fit beside standing instructions and attached files."""
    return fit_history(list(history.turns), max_tokens=_budget(turn, standing=standing, attached=attached))


def _history_of(turn: Turn, earlier: list[Turn]) -> PromptHistory:
    return fit_history(earlier, max_tokens=_budget(turn))


def _budget(turn: Turn, *, standing: str = "", attached: str = "") -> int:
    """Return the tokens left for history beside the turn's message and its tool messages."""
    texts = "\n".join(filter(None, (attached, tool_text(turn))))
    budget = history_token_budget(turn.message, turn.thread.instructions, standing=standing, attached=texts)
    # For the definitions of tools and for what they return.
    return budget - (settings.CATO.llm.context_tokens // 4 if turn.thread.tool_server_ids else 0)


def _last_visit(turn: Turn) -> datetime | None:
    """Return when the author of the turn wrote before they were away for some hours."""
    earlier = Turn.objects.filter(author_id=turn.author_id, created_at__lt=timezone.now() - _AWAY)
    return earlier.order_by("-created_at").values_list("created_at", flat=True).first()


def _earlier_turns(turn: Turn) -> list[Turn]:
    """Return the answered, not forgotten turns of the active branch before this one, oldest first."""
    if turn.position == 0:
        return []
    exchange_id = Coalesce(OuterRef("exchange_id"), OuterRef("copied_exchange_id"))
    forgotten = Exchange.objects.filter(id=exchange_id).exclude(forgotten_at=None)
    rows = (
        Turn.objects.active_branch()
        .with_attachment_marks()
        .filter(~Exists(forgotten), thread_id=turn.thread_id, position__lt=turn.position)
        .exclude(answer="")
        .exclude(is_dummy=True)
        .order_by("-position")[:_MAX_TURNS]
    )
    turns = list(rows)[::-1]
    load_attachments(turns)
    return turns

"""Before the model is asked: recall for a turn, check what was recalled, and build the prompt."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from chat.answers.job import AnswerJob
from chat.digests.scope import DigestScope
from chat.instructions.applying import AppliedInstruction, applicable, choose, prompt_text, read_applicable
from chat.instructions.editing import can_be_detected, suggest
from chat.llm.client import Message
from chat.llm.prompts import PromptHistory, build_prompt, fit_history, history_token_budget, tool_text
from chat.models import Attachment, Thread, ThreadSession, Turn, load_attachments
from chat.rendering.citations import Citations
from chat.rows.sources import citations_of
from chat.rows.thread_titles import session_title
from chat.rows.turns import TurnDetails
from chat.turns.corrections import can_be_correction
from chat.web_search.records import WebSearch
from memory import api as memory
from memory.api import (
    Exchange,
    Hit,
    RecalledPassage,
    RecallFilter,
    SearchResults,
    SpaceIds,
    WebPassage,
    build_attached_context,
    build_prompt_context,
    build_web_context,
    group_adjacent,
)

_MAX_TURNS = 500
_AWAY = timedelta(hours=4)
_MAX_WEB_TOKENS = 2_000  # of what is quoted of the web; in a small context an eighth of it
# Instead of the number of a session, for the rows of instructions among those of exchanges.
_INSTRUCTION = -1


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """The results of the recall for a turn, and the history of its prompt, None if the recall took too long."""

    search_results: SearchResults
    history: PromptHistory | None = None


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer after recall: the prompt, the revision and panel of its row, and the passages it can cite.

    `titles` are those of the threads of what was recalled, as `thread_titles` returns them. `instructions` are those in
    the prompt; `has_instruction`: the message was detected as one itself; `is_correction`: it was detected as a correction of
    the answer before it. `history_ids` are the exchanges of the history in the prompt. `web_search` is what was found on the
    web, None if it was not searched.
    """

    messages: list[Message]
    revision: int
    citations: Citations
    note: str = ""
    recalled: tuple[RecalledPassage, ...] = ()
    titles: dict[uuid.UUID, str] = field(default_factory=dict)
    instructions: tuple[AppliedInstruction, ...] = ()
    has_instruction: bool = False
    is_correction: bool = False
    history_ids: frozenset[uuid.UUID] = frozenset()
    web_search: WebSearch | None = None


@dataclass(frozen=True, slots=True)
class _Check:
    """The present state of exchanges: which are forgotten, which the audience can find, and their threads' titles.

    `instructions` are those that apply in the thread now.
    """

    forgotten_ids: frozenset[uuid.UUID]
    findable_ids: frozenset[uuid.UUID]
    titles: dict[uuid.UUID, str]
    instructions: tuple[AppliedInstruction, ...]


def recall_for_turn(job: AnswerJob) -> TurnRecall:
    """Recall for this turn from the spaces that all readers of its thread may read."""
    turn = job.turn
    earlier = _earlier_turns(turn)
    history = _history_of(turn, earlier)
    scope = None if turn.digest_scope is None else DigestScope.from_json(turn.digest_scope)
    can_instruct = job.endpoint is not None and can_be_detected(turn)
    search_results = memory.recall(
        [*(t.message for t in earlier), turn.message],
        spaces=job.audience,
        exclude=history.exchange_ids | ({turn.effective_exchange_id} if turn.effective_exchange_id else set()),
        conversation_length=history.length,
        keep_query=turn.thread.is_remembered,
        person_id=turn.author_id,
        filters=RecallFilter.from_json(turn.thread.recall_filter).filter(),
        detect_instruction=can_instruct,
        detect_correction=job.endpoint is not None and can_be_correction(turn, earlier),
        preferred=memory.preferred_space_id(turn.thread.space),
        get_last_visit=lambda: _last_visit(turn),
        period=None if scope is None else scope.period,
        except_thread=None if scope is None else turn.thread_id,
    )
    return TurnRecall(search_results, history)


def prepare_answer(
    job: AnswerJob, recalled: TurnRecall, recall_ms: int, web_search: WebSearch | None = None
) -> PreparedAnswer | None:
    """Save the recalled exchanges and build the prompt; return None if the lease of the turn is lost.

    What was forgotten, hidden or moved since the recall is left out. Without an endpoint the answer is a placeholder,
    which is not remembered even if this process dies before it is complete.
    """
    history = recalled.history or _history_of(job.turn, _earlier_turns(job.turn))
    # Choosing passages of long files takes a while, so it is done before the transaction.
    return _prepare(job, recalled.search_results, recall_ms, history, _attached_context(job, history), web_search)


@transaction.atomic
def _prepare(
    job: AnswerJob,
    results: SearchResults,
    recall_ms: int,
    history: PromptHistory,
    attached_context: str,
    web_search: WebSearch | None,
) -> PreparedAnswer | None:
    turn = job.turn
    revision = turn.revision + 1
    # Read again after the recall, in the transaction that saves what was recalled.
    check = _check(turn, history.exchange_ids, results.results, job.audience)
    has_instruction = turn.has_instruction
    if results.instruction is not None and suggest(turn, results.instruction):
        has_instruction = True
    hits = tuple(hit for hit in results.results if hit.exchange.id in check.findable_ids)
    if web_search is not None:
        web_search = web_search.numbered(1 + len(group_adjacent(hits)))
    updated = Turn.objects.filter(id=turn.id, attempt=job.attempt, state=Turn.State.RECALLING).update(
        state=Turn.State.ANSWERING,
        revision=revision,
        recall_note=results.note,
        recall_ms=recall_ms,
        finish_reason="",
        is_dummy=job.endpoint is None,
        memory_searches=[],
        tool_uses=[],
        web_search=web_search.as_json() if web_search else {},
        applied_instructions=[str(row.id) for row in check.instructions],
        has_instruction=has_instruction,
        is_correction=results.is_correction,
        heartbeat_at=timezone.now(),
    )
    if not updated:
        transaction.set_rollback(True)
        return None
    if check.forgotten_ids & history.exchange_ids:
        history = history.without(check.forgotten_ids)
        attached_context = _attached_context(job, history)
    standing = prompt_text(check.instructions)
    web_context = _web_context(web_search)
    if standing or attached_context or web_context:
        history = _fit(turn, history, standing, "\n".join(filter(None, (attached_context, web_context))))
    passages = memory.log_recall(turn.id, hits, is_first=job.attempt == 1)
    conf = settings.CATO.vector_store
    prompt_context = build_prompt_context(hits, max_tokens=conf.context_max_tokens) if conf.inject_context else ""
    return PreparedAnswer(
        build_prompt(
            history=history,
            prompt_context=prompt_context,
            web_context=web_context,
            turn=turn,
            attachments=job.attachments,
            attached_context=attached_context,
            standing=standing,
            partial_answer=turn.answer,
        ),
        revision,
        citations_of(turn.id, passages, check.titles, web_search, is_quoted=bool(prompt_context or web_context)),
        results.note,
        tuple(passages),
        check.titles,
        check.instructions,
        has_instruction,
        results.is_correction,
        history.exchange_ids,
        web_search,
    )


def prepared_turn(job: AnswerJob, prepared: PreparedAnswer) -> tuple[Turn, TurnDetails]:
    """Return the turn as its row is after the preparation, with the details that pages show of it."""
    turn = copy(job.turn)
    turn.state, turn.revision, turn.recall_note = Turn.State.ANSWERING, prepared.revision, prepared.note
    turn.memory_searches, turn.tool_uses = [], []
    turn.web_search = prepared.web_search.as_json() if prepared.web_search else {}
    turn.applied_instructions = [str(row.id) for row in prepared.instructions]
    turn.has_instruction, turn.is_correction = prepared.has_instruction, prepared.is_correction
    instructions = {str(row.id): row for row in prepared.instructions}
    details = TurnDetails(
        attachments=job.attachments, recalled=prepared.recalled, titles=prepared.titles, instructions=instructions
    )
    return turn, details


def _check(turn: Turn, exchange_ids: Iterable[uuid.UUID], hits: Iterable[Hit], audience: SpaceIds) -> _Check:
    """Check the exchanges of the history and the hits, with one statement.

    The statement also reads the titles of the hits, and the instructions that apply in the turn's thread.
    """
    ids = {*exchange_ids, *(hit.exchange.id for hit in hits)}
    if not ids:
        return _Check(frozenset(), frozenset(), {}, read_applicable(turn.thread, besides=turn.id))
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
        elif not is_inactive and space_id in audience:
            findable.add(id)
        if thread_id and title is not None:
            titles[thread_id] = title
            if seq:
                titles[session_id] = session_title(title, seq)
    return _Check(frozenset(forgotten), frozenset(findable), titles, choose(applying, space_id=turn.thread.space_id))


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


def _web_context(web_search: WebSearch | None) -> str:
    """Return what is quoted of the web."""
    if web_search is None:
        return ""
    passages = [
        WebPassage(source.number, source.title, source.address, source.published[:10], source.text)
        for source in web_search.sources
    ]
    return build_web_context(passages, max_tokens=min(_MAX_WEB_TOKENS, settings.CATO.llm.context_tokens // 8))


def _fit(turn: Turn, history: PromptHistory, standing: str, attached: str) -> PromptHistory:
    """Return the history without the oldest turns that no longer fit beside standing instructions and `attached` texts."""
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
    # Nobody was there for the message of a digest.
    earlier = earlier.filter(digest_scope__isnull=True)
    return earlier.order_by("-created_at").values_list("created_at", flat=True).first()


def _earlier_turns(turn: Turn) -> list[Turn]:
    """Return the answered, not forgotten turns of the active branch before this one, oldest first.

    A digest has none: those before it are digests of other periods.
    """
    if turn.position == 0 or turn.digest_scope is not None:
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

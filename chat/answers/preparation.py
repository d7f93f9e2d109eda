"""Before the model is asked: check what was recalled, save it, and build the prompt."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Q
from django.utils import timezone

from chat.answers.history import earlier_turns, fit_beside, history_of, token_budget
from chat.answers.job import AnswerJob
from chat.answers.present_state import PresentState, check_present_state
from chat.answers.recall import TurnRecall
from chat.instructions.applying import AppliedInstruction, prompt_text
from chat.instructions.editing import suggest
from chat.llm.client import Message
from chat.llm.prompts import PromptHistory, build_prompt
from chat.models import Attachment, Endpoint, Turn
from chat.rendering.citations import Citations
from chat.rows.sources import citations_of
from chat.rows.turns import TurnDetails
from chat.web_search.records import WebSearch
from memory import api as memory
from memory.api import (
    Hit,
    RecalledPassage,
    SpaceIds,
    WebPassage,
    build_attached_context,
    build_web_context,
    group_adjacent,
    quote_passages,
)

_MAX_WEB_TOKENS = 2_000  # of what is quoted of the web; in a small context an eighth of it


class PolicyChangedError(Exception):
    """The endpoint or its data policy was changed since the job was built."""


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer after recall: the prompt, the revision and panel of its row, and the passages it can cite.

    `titles` are those of the threads of what was recalled, as `thread_titles` returns them. `instructions` are those in
    the prompt; `has_instruction`: the message was detected as one itself; `is_correction`: it was detected as a correction of
    the answer before it. `history_ids` are the exchanges of the history in the prompt. `web_search` is what was found on the
    web, None if it was not searched. `withheld` is as in `Turn`. `space_ids` are the spaces of all texts in the prompt.
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
    withheld: dict[str, Any] = field(default_factory=dict)
    space_ids: SpaceIds = frozenset()


def prepare_answer(
    job: AnswerJob, recalled: TurnRecall, recall_ms: int, web_search: WebSearch | None = None
) -> PreparedAnswer | None:
    """Save the recalled exchanges and build the prompt; return None if the lease of the turn is lost.

    What was forgotten, hidden or moved since the recall is left out. Without an endpoint the answer is a placeholder,
    which is not remembered even if this process dies before it is complete. Raises PolicyChangedError.
    """
    history = recalled.history or history_of(job.turn, earlier_turns(job.turn))
    # Choosing passages of long files takes a while, so it is done before the transaction.
    return _prepare(job, recalled, recall_ms, history, _attached_context(job, history), web_search)


@transaction.atomic
def _prepare(
    job: AnswerJob,
    recalled: TurnRecall,
    recall_ms: int,
    history: PromptHistory,
    attached_context: str,
    web_search: WebSearch | None,
) -> PreparedAnswer | None:
    turn, results = job.turn, recalled.search_results
    # The partial text of an answer that is resumed cites passages by the numbers that they have.
    logged = memory.logged_hits(turn.id, spaces=job.permitted) if turn.answer else {}
    # Read again after the recall, in the transaction that saves what was recalled.
    check = check_present_state(job, history.exchange_ids, [*results.results, *chain.from_iterable(logged.values())])
    withheld = _withheld(job, recalled.withheld, check.withheld_instructions)
    has_instruction = turn.has_instruction
    if results.instruction is not None and suggest(turn, results.instruction):
        has_instruction = True
    hits = _findable(results.results, check)
    numbered = dict(enumerate(group_adjacent(hits), start=1))
    numbered |= {number: found for number, group in logged.items() if (found := _findable(group, check))}
    if web_search is not None and not turn.answer:
        web_search = web_search.numbered(1 + max(numbered, default=0))
    fields = {
        "recall_note": results.note,
        "recall_ms": recall_ms,
        "web_search": web_search.as_json() if web_search else {},
        "applied_instructions": [str(row.id) for row in check.instructions],
        "has_instruction": has_instruction,
        "is_correction": results.is_correction,
        "withheld": withheld,
    }
    if not _begin_answering(job, fields):
        return None
    if check.forgotten_ids & history.exchange_ids:
        history = history.without(check.forgotten_ids)
        attached_context = _attached_context(job, history)
    standing, web_context = prompt_text(check.instructions), _web_context(web_search)
    if standing or attached_context or web_context:
        history = fit_beside(turn, history, standing, "\n".join(filter(None, (attached_context, web_context))))
    passages = _save_log(job, hits)
    conf = settings.CATO.vector_store
    prompt_context = quote_passages(numbered, max_tokens=conf.context_max_tokens) if conf.inject_context else ""
    return PreparedAnswer(
        messages=build_prompt(
            history=history,
            prompt_context=prompt_context,
            web_context=web_context,
            turn=turn,
            attachments=job.attachments,
            attached_context=attached_context,
            standing=standing,
            partial_answer=turn.answer,
        ),
        revision=turn.revision + 1,
        citations=citations_of(
            turn.id, passages, check.titles, web_search, is_quoted=bool(prompt_context or web_context)
        ),
        note=results.note,
        recalled=tuple(passages),
        titles=check.titles,
        instructions=check.instructions,
        has_instruction=has_instruction,
        is_correction=results.is_correction,
        history_ids=history.exchange_ids,
        web_search=web_search,
        withheld=withheld,
        space_ids=_space_ids(turn, chain.from_iterable(numbered.values()), check.instructions),
    )


def _space_ids(turn: Turn, hits: Iterable[Hit], instructions: Iterable[AppliedInstruction]) -> SpaceIds:
    return frozenset(
        (turn.thread.space_id, *(hit.exchange.space_id for hit in hits), *(row.space_id for row in instructions))
    )


def _save_log(job: AnswerJob, hits: Sequence[Hit]) -> list[RecalledPassage]:
    """Save what was recalled and return it. An answer that is resumed keeps its log, whatever can be quoted of it now."""
    if job.turn.answer:
        return memory.recalled_for([job.turn_id], spaces=job.audience).get(job.turn_id, [])
    return memory.log_recall(job.turn_id, hits, is_first=job.attempt == 1)


def _findable(hits: Iterable[Hit], check: PresentState) -> list[Hit]:
    return [hit for hit in hits if hit.exchange.id in check.findable_ids]


def _begin_answering(job: AnswerJob, fields: dict[str, Any]) -> bool:
    """Save what was prepared for the turn; return False if its lease is lost. Raises PolicyChangedError."""
    turn = job.turn
    leased = Turn.objects.filter(id=turn.id, attempt=job.attempt, state=Turn.State.RECALLING)
    # The row of the endpoint decides what it may receive now; to check it here takes no further statement.
    updated = leased.filter(_is_unchanged(job)).update(
        state=Turn.State.ANSWERING,
        revision=turn.revision + 1,
        finish_reason="",
        is_dummy=job.endpoint is None,
        fallback={},
        heartbeat_at=timezone.now(),
        **fields,
    )
    if updated:
        return True
    if leased.exists():
        raise PolicyChangedError
    transaction.set_rollback(True)
    return False


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
    turn.fallback = {}
    turn.web_search = prepared.web_search.as_json() if prepared.web_search else {}
    turn.applied_instructions = [str(row.id) for row in prepared.instructions]
    turn.has_instruction, turn.is_correction = prepared.has_instruction, prepared.is_correction
    turn.withheld = prepared.withheld
    instructions = {str(row.id): row for row in prepared.instructions}
    details = TurnDetails(
        attachments=job.attachments, recalled=prepared.recalled, titles=prepared.titles, instructions=instructions
    )
    return turn, details


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
        max_tokens=token_budget(job.turn) // 2,
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

"""Searches of memory that the model makes while it answers: their limits, their results in the prompt, and their record."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from chat.answers.flush import publish_frame
from chat.answers.memory_tools import ToolFindings, ToolScope, call_label, read_scope, run_tool, sendable_spaces
from chat.answers.preparation import PreparedAnswer, prepared_turn
from chat.answers.recall_pool import RecallSkippedError, recall_pool
from chat.answers.stream import AnswerStream
from chat.executors import run_in_db_thread, run_in_render_thread
from chat.llm.client import Message
from chat.llm.endpoint import policy_columns, policy_of
from chat.llm.prompts import tokens_left
from chat.llm.tool_calls import ToolCall
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.hub import hub
from chat.realtime.messages import Frame
from chat.rows.sources import citations_of
from chat.rows.thread_titles import thread_titles
from memory import api as memory
from memory.api import CatoError, Exchange, Hit, SpaceIds, build_prompt_context, estimate_tokens, in_spaces

MAX_SEARCHES, MAX_ROUNDS = 6, 4  # of one answer
_MAX_TOKENS = 1_500  # of one result; about three long passages
_MIN_TOKENS = 100  # below this, nothing more is quoted
_NO_ROOM = "The prompt has no room for more results. Answer with what you have."
_LIMIT = "No more searches are possible for this answer. Answer with what you have."
_FAILED = "Memory could not be searched. Answer without it."


@dataclass(slots=True)
class _Search:
    """A call and what became of it, as `Turn.memory_searches` stores it."""

    tool: str
    label: str
    state: str = "running"
    numbers: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"tool": self.tool, "label": self.label, "state": self.state, "numbers": self.numbers}


class MemorySearches:
    """The searches of one answer, in their order; `prepared` grows with the passages that they find."""

    def __init__(self, stream: AnswerStream, prepared: PreparedAnswer) -> None:
        self._stream = stream
        self.prepared = prepared
        self._earlier = stream.memory_searches
        self._searches: list[_Search] = []
        self._remaining_tokens = 0
        self._rounds = 0

    async def run(self, calls: Sequence[ToolCall], prompt: Sequence[Message]) -> list[Message]:
        """Carry out calls side by side, show them on open pages, and return their results as messages.

        Calls over the limit are refused; results that no longer fit into the model's context after `prompt` are left out.
        """
        self._remaining_tokens = tokens_left(prompt)
        # The record of the limit itself is one entry more than searches are possible.
        is_over = self._rounds == MAX_ROUNDS
        allowed = [] if is_over else calls[: max(0, MAX_SEARCHES - len(self._searches))]
        self._rounds += not is_over
        begun = [_Search(call.name, call_label(call)) for call in allowed]
        self._searches += begun
        if begun:
            await self._save()
        findings = await asyncio.gather(*(self._find(call) for call in allowed))
        texts = [await self._record(search, found) for search, found in zip(begun, findings, strict=True)]
        if len(allowed) < len(calls):
            await self.note_limit()
            texts += [_LIMIT] * (len(calls) - len(allowed))
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, texts, strict=True)
        ]

    async def note_limit(self) -> None:
        """Record that the model asked for more searches than an answer may have."""
        if not any(search.state == "limit" for search in self._searches):
            self._searches.append(_Search("", "", "limit"))
            await self._save()

    async def _find(self, call: ToolCall) -> ToolFindings | None:
        """Return what a call finds; None if memory does not answer in time."""
        deadline = time.monotonic() + settings.CATO.vector_store.retrieval_timeout
        try:
            spaces, found = await recall_pool().run(self._author_id, deadline, lambda: self._run_tool(call))
        except (RecallSkippedError, CatoError):
            return None
        # What it returns can be from any of them.
        self.prepared = replace(self.prepared, space_ids=self.prepared.space_ids | spaces)
        return found

    def _run_tool(self, call: ToolCall) -> tuple[SpaceIds, ToolFindings]:
        """Return the spaces that the call reads, and what it finds there."""
        scope = self._read_scope()
        return scope.spaces, run_tool(call, scope)

    def _read_scope(self) -> ToolScope:
        return read_scope(
            self._stream.job.thread_id,
            self._author_id,
            endpoint_name=self._endpoint_name,
            digest_scope=self._stream.job.turn.digest_scope,
            exclude=self.prepared.history_ids,
            passages={passage.number: passage.exchange_id for passage in self.prepared.recalled},
        )

    @property
    def _endpoint_name(self) -> str:
        endpoint = self._stream.job.endpoint
        return endpoint.name if endpoint else ""

    @property
    def _author_id(self) -> uuid.UUID:
        return self._stream.job.turn.author_id

    async def _record(self, search: _Search, found: ToolFindings | None) -> str:
        """Save what a search found, and return it as a text for the model. Passages keep the numbers they have."""
        search.state = "failed" if found is None or found.error else "done"
        hits = found.hits if found else ()
        numbers = {id: passage.number for passage in self.prepared.recalled for id in passage.exchange_ids}
        search.numbers = sorted({numbers[hit.exchange.id] for hit in hits if hit.exchange.id in numbers})
        again = ", ".join(f"[{number}]" for number in search.numbers)
        new = [hit for hit in hits if hit.exchange.id not in numbers]
        has_room = min(_MAX_TOKENS, self._remaining_tokens) >= _MIN_TOKENS
        first_number = self._next_number
        kept = await self._save(search, new if has_room else [])
        if found is None:
            return _FAILED
        if found.error:
            return f"Error: {found.error}"
        texts = [await self._quote(kept, first_number), found.text, again and f"Already quoted above: {again}."]
        if new and not has_room:
            texts.append(_NO_ROOM)
        text = "\n\n".join(filter(None, texts)) or "No results."
        self._remaining_tokens -= estimate_tokens(text)
        return text

    async def _quote(self, hits: Sequence[Hit], first_number: int) -> str:
        max_tokens = min(_MAX_TOKENS, self._remaining_tokens)
        return await run_in_db_thread(
            partial(build_prompt_context, hits, max_tokens=max_tokens, first_number=first_number)
        )

    @property
    def _next_number(self) -> int:
        return 1 + max(self.prepared.citations.sources, default=0)

    async def _save(self, search: _Search | None = None, new: Sequence[Hit] = ()) -> list[Hit]:
        """Save the searches, with what one of them found, and show them; return the hits that are still findable."""
        stream = self._stream
        stream.progress.revision += 1
        kept = await run_in_db_thread(self._write, search, new, stream.progress.revision)
        if kept is None:
            stream.has_lost_lease = True
            stream.stopped.set()
            return []
        stream.add_sources(self.prepared)
        async with stream.progress.render_lock:
            # A checkpoint can have saved the first revision before the searches: a page that read it needs the frame, too.
            stream.progress.revision += 1
            if hub.is_needed(stream.job.thread_id):
                await publish_frame(await run_in_render_thread(self._frame, has_new=bool(kept)))
        return kept

    @transaction.atomic
    def _write(self, search: _Search | None, new: Sequence[Hit], revision: int) -> list[Hit] | None:
        """Save what was found as far as it may be quoted now; return it, or None if the lease is lost."""
        job = self._stream.job
        leased = Turn.objects.filter(id=job.turn_id, attempt=job.attempt, state__in=Turn.RUNNING_STATES)
        rows = leased.select_for_update(of=("self",)).select_related("thread__space")
        turn = rows.annotate(**policy_columns(self._endpoint_name)).first()
        if turn is None:
            return None
        kept = _still_findable(new, turn)
        if search is not None and kept:
            passages = memory.extend_recall_log(turn.id, kept, first_number=self._next_number)
            search.numbers += [passage.number for passage in passages]
            titles = self.prepared.titles | thread_titles(hit.exchange for hit in kept)
            recalled = (*self.prepared.recalled, *passages)
            citations = citations_of(turn.id, recalled, titles, self.prepared.web_search)
            self.prepared = replace(self.prepared, recalled=recalled, titles=titles, citations=citations)
        self._stream.memory_searches = [*self._earlier, *(each.as_json() for each in self._searches)]
        leased.update(memory_searches=self._stream.memory_searches, revision=revision)
        return kept

    def _frame(self, *, has_new: bool) -> Frame:
        turn, details = prepared_turn(self._stream.job, self.prepared)
        turn.revision, turn.memory_searches = self._stream.progress.revision, self._stream.memory_searches
        return frames.memory_searched(turn, details, has_new=has_new)


def _still_findable(hits: Sequence[Hit], turn: Turn) -> list[Hit]:
    """Return the hits that all readers of the turn's thread may read now, and the endpoint may receive.

    This is checked in the transaction that saves them.
    """
    if not hits:
        return []
    readable = in_spaces(Exchange.objects.findable(), sendable_spaces(turn.thread, policy_of(turn), turn.digest_scope))
    ids = set(readable.filter(id__in=[hit.exchange.id for hit in hits]).values_list("id", flat=True))
    return [hit for hit in hits if hit.exchange.id in ids]

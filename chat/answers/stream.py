"""An answer being generated: what was received of it, and its outcome."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from django.conf import settings

from chat.answers.job import AnswerJob
from chat.answers.persistence import AnswerCheckpoint, AnswerOutcome
from chat.answers.preparation import PreparedAnswer
from chat.answers.progress import AnswerProgress
from chat.errors import NO_REASON, EndpointReason
from chat.llm import failures
from chat.llm.events import StreamChunk, add_usage, parse_usage
from chat.llm.logprobs import Logprobs, LogprobsError
from chat.llm.tool_calls import ToolCall, ToolCallCollector, ToolCallError
from chat.llm.usage_counts import UsageMeter
from chat.models import Turn
from chat.turns.queue import Successors
from memory.api import clean_text

_MAX_REASONING = 200_000  # characters


class AnswerStream:
    """An answer being generated in this process.

    `feed` receives text, `progress` renders it, and a `checkpoint` saves what is rendered.
    """

    def __init__(self, job: AnswerJob) -> None:
        self.job = job
        self.text = job.turn.answer
        self.reasoning = job.turn.reasoning
        self.progress = AnswerProgress(job.turn)
        self.is_refusal = bool(self.text) and job.turn.is_refusal
        self.system_fingerprint = ""
        # None: the client did not request them.
        self.logprobs = Logprobs() if job.turn.generation_options.get("logprobs") else None
        self.usage: dict[str, Any] | None = None
        self.tool_calls = ToolCallCollector()
        # With those of the part of the answer that is continued.
        self.memory_searches: list[dict[str, Any]] = job.turn.memory_searches
        self.tool_uses: list[dict[str, Any]] = job.turn.tool_uses
        # Whether it waits until a person allows a tool.
        self.state: str = Turn.State.ANSWERING
        self.finish_reason = ""
        self.is_full = False
        self.model = job.choice
        self.meter = UsageMeter()
        self.stopped = asyncio.Event()
        self.images_dropped = False
        # As in `Turn`: which endpoint answers instead of the chosen one.
        self.fallback: dict[str, str] = {}
        self.has_lost_lease = False
        self.has_lost_access = False
        self.is_finished = False
        # What follows the answer, read when it has ended.
        self.successors: Successors | None = None
        # The prompt and what was recalled, also by searches; None until then.
        self.prepared: PreparedAnswer | None = None
        # The time of the model request; None before it, and after the first chunk.
        self.requested_at: float | None = None
        self._pending = ""
        self._received_chars = 0
        # An answer can take several requests: the usage of the earlier ones, also of a part that is resumed, and where the
        # text of this one begins.
        self._earlier_usage = parse_usage(job.turn.usage) or {}
        self._earlier_calls = len(self.memory_searches) + len(self.tool_uses)
        self._round_start = len(self.text)
        self._max_chars = settings.CATO.chat.max_answer_chars

    def use_job(self, job: AnswerJob) -> None:
        """Go on with this job of the same turn, whose endpoint is another one."""
        self.job, self.model = job, job.choice

    def start(self, prepared: PreparedAnswer) -> None:
        """Set the prepared state; from now on this stream writes the row."""
        self.progress.start(prepared.revision, prepared.citations)
        self.prepared = prepared

    def begin_round(self) -> None:
        """Begin to receive the response to another request; its text is a new paragraph."""
        self._earlier_usage = self._total_usage() or {}
        if self.tool_calls.calls and self.text.strip():
            self._pending = "\n\n"
        self.usage, self.tool_calls, self._round_start = None, ToolCallCollector(), len(self.text)

    @property
    def has_received(self) -> bool:
        """Return whether the model has begun to answer: it has sent text or reasoning, or called a tool."""
        calls = len(self.memory_searches) + len(self.tool_uses)
        return bool(self._received_chars or self.tool_calls.calls or calls > self._earlier_calls)

    @property
    def round_text(self) -> str:
        """The text of the response that is being received."""
        return self.text[self._round_start :].strip()

    def add_sources(self, prepared: PreparedAnswer) -> None:
        """Let the answer cite the passages that a search has found since its start."""
        self.progress.citations = prepared.citations
        self.prepared = prepared

    @property
    def recalled_ids(self) -> list[uuid.UUID] | None:
        """The exchanges that were recalled; None until then."""
        if self.prepared is None:
            return None
        return [id for passage in self.prepared.recalled for id in passage.exchange_ids]

    def feed(self, chunk: StreamChunk) -> None:
        """Add the cleaned text of a chunk, up to the maximum length of an answer.

        Half of a line end or of a surrogate pair is kept until the other half arrives. An answer is a refusal if it begins
        as one. Raises ModelError if there are too many calls of tools or logprobs, or one is too long.
        """
        if chunk.text:
            self.is_refusal = self.is_refusal or (chunk.is_refusal and not self.text)
            received = self._pending + chunk.text
            self._pending = received[-1:] if received[-1:] == "\r" or "\ud800" <= received[-1:] <= "\udbff" else ""
            text = clean_text(received[: len(received) - len(self._pending)])
            self.text = (self.text + text)[: self._max_chars]
        reasoning = chunk.reasoning if self.reasoning else chunk.reasoning.lstrip()
        self.reasoning += clean_text(reasoning)[: _MAX_REASONING - len(self.reasoning)]
        self.usage = chunk.usage or self.usage
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.system_fingerprint = chunk.system_fingerprint or self.system_fingerprint
        self._collect_details(chunk)
        self._received_chars += len(chunk.text) + len(chunk.reasoning)
        if len(self.text) >= self._max_chars or self._received_chars > self._max_chars + _MAX_REASONING:
            self.is_full, self.finish_reason = True, Turn.FinishReason.LENGTH

    def _collect_details(self, chunk: StreamChunk) -> None:
        try:
            self.tool_calls.add(chunk.tool_calls)
            if self.logprobs is not None:
                self.logprobs.add(chunk.logprobs)
        except (LogprobsError, ToolCallError) as error:
            raise failures.unreadable() from error

    @property
    def called_tools(self) -> list[ToolCall]:
        """The complete calls of the client's tools; none if the answer was cut off."""
        is_cut_off = self.finish_reason in (Turn.FinishReason.LENGTH, Turn.FinishReason.CONTENT_FILTER)
        return [] if is_cut_off or not self.job.turn.generation_options.get("tools") else self.tool_calls.calls

    @property
    def has_unrendered_text(self) -> bool:
        """Return whether received text is not rendered yet."""
        return len(self.text) > len(self.progress.text)

    def checkpoint(self) -> AnswerCheckpoint:
        """Return the state to save: the rendered text, without what was received since."""
        job, progress = self.job, self.progress
        return AnswerCheckpoint(
            job.turn_id,
            job.attempt,
            progress.text,
            progress.reasoning,
            progress.revision,
            self.meter.total(),
            self.is_refusal,
        )

    def build_outcome(
        self, state: str, error_code: str = "", error: str = "", reason: EndpointReason = NO_REASON
    ) -> AnswerOutcome:
        """Return the outcome, with all text and reasoning received."""
        tool_messages = self._messages_with_calls() if state == Turn.State.COMPLETE else None
        # A call of tools that nobody offered is no reason, and a call that is required ends with "stop".
        known = self.finish_reason in {*Turn.FinishReason.values} - {Turn.FinishReason.TOOL_CALLS}
        finish_reason = self.finish_reason if known else Turn.FinishReason.STOP
        if tool_messages is not None:
            finish_reason = Turn.FinishReason.TOOL_CALLS
        return AnswerOutcome(
            state,
            self.text,
            self.reasoning,
            self.model,
            self._total_usage(),
            finish_reason=finish_reason if state == Turn.State.COMPLETE else "",
            error_code=error_code,
            error=error,
            reason=reason,
            images_dropped=self.images_dropped,
            tool_messages=tool_messages,
            uncounted_usage=self.meter.total(),
            fallback=self.fallback,
            is_refusal=self.is_refusal,
            system_fingerprint=self.system_fingerprint,
        )

    def _total_usage(self) -> dict[str, Any] | None:
        """Return the usage of all requests for this answer; None if the endpoint sent none."""
        return add_usage(self._earlier_usage, self.usage) if self.usage else self._earlier_usage or None

    def _messages_with_calls(self) -> list[dict[str, Any]] | None:
        """Return the turn's tool messages with the new calls at their end; None if there are none."""
        if not self.called_tools:
            return None
        calls = [call.as_json() for call in self.called_tools]
        message = {"role": "assistant", "content": self.text or None, "tool_calls": calls}
        return [*self.job.turn.tool_messages, message]

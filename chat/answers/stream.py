"""An answer being generated: its text, the parts that are rendered, saved and published, and its outcome."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from chat.answers.job import AnswerJob
from chat.answers.persistence import AnswerCheckpoint, AnswerOutcome
from chat.answers.preparation import PreparedAnswer
from chat.errors import NO_REASON, EndpointReason
from chat.llm import failures
from chat.llm.events import StreamChunk, add_usage
from chat.llm.logprobs import Logprobs, LogprobsError
from chat.llm.tool_calls import ToolCall, ToolCallCollector, ToolCallError
from chat.llm.usage_counts import UsageMeter
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.messages import Frame
from chat.rendering.blocks import GrowingAnswer
from chat.rendering.citations import Citations
from chat.turns.queue import Successors
from memory.api import clean_text

_SAVE_INTERVAL = 0.5  # seconds
_MAX_REASONING = 200_000  # characters
_MAX_RENDERED_CHARS = 16_000  # per flush; an endpoint can send faster than the text can be rendered


class AnswerStream:
    """An answer being generated in this process.

    Text is received by `feed`, rendered by `render_new`, saved as a `checkpoint`, and published as a `frame`.
    """

    def __init__(self, job: AnswerJob) -> None:
        self.job = job
        self.text = job.turn.answer
        self.reasoning = job.turn.reasoning
        self.revision = job.turn.revision
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
        self.has_started = False
        self.is_finished = False
        # Whether the answer has any block, known once it is drained.
        self.has_blocks = False
        self.is_awaiting_save = False
        self.saved_at = 0.0
        # What follows the answer, read when it has ended.
        self.successors: Successors | None = None
        # The prompt and what was recalled, also by searches; None until then.
        self.prepared: PreparedAnswer | None = None
        # The exchanges that were recalled; None until then.
        self.recalled_ids: list[uuid.UUID] | None = None
        # The time of the model request; None before it, and after the first chunk.
        self.requested_at: float | None = None
        self._rendered_chars = len(self.text)
        self._collected_reasoning = self._published_reasoning = len(self.reasoning)
        self._renderer = GrowingAnswer(self.text)
        # Rendering runs in another thread, one call at a time per answer.
        self.render_lock = asyncio.Lock()
        self._finished: list[str] = []
        self._segments: list[str] = []
        self._is_reset = False
        self._pending = ""
        self._received_chars = 0
        # An answer can take several requests: the usage of the earlier ones, and where the text of this one begins.
        self._earlier_usage: dict[str, Any] = {}
        self._earlier_calls = len(self.memory_searches) + len(self.tool_uses)
        self._round_start = len(self.text)
        self._max_chars = settings.CATO.chat.max_answer_chars

    def use_job(self, job: AnswerJob) -> None:
        """Go on with this job of the same turn, whose endpoint is another one."""
        self.job, self.model = job, job.choice

    def start(self, prepared: PreparedAnswer) -> None:
        """Set the prepared state; from now on this stream writes the row."""
        self.revision = prepared.revision
        self.prepared = prepared
        self.recalled_ids = [id for passage in prepared.recalled for id in passage.exchange_ids]
        # The text of an answer that is resumed cites the passages of this prompt, too.
        self._renderer = GrowingAnswer(self.text, prepared.citations)
        self.saved_at = time.monotonic()
        self.has_started = True

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
        self.prepared = prepared
        self.recalled_ids = [id for passage in prepared.recalled for id in passage.exchange_ids]
        self._renderer.citations = prepared.citations

    def feed(self, chunk: StreamChunk) -> None:
        """Add the cleaned text of a chunk, up to the maximum length of an answer.

        Half of a line end or of a surrogate pair is kept until the other half arrives. An answer is a refusal if it begins
        as one. Raises ModelError if there are too many calls of tools or logprobs, or one is too long.
        """
        if chunk.text:
            self.is_refusal = self.is_refusal or (chunk.is_refusal and not self.text)
            received = self._pending + chunk.text
            self._pending = received[-1:] if received[-1:] == "\r" or "\ud800" <= received[-1:] <= "\udbff" else ""
            self.text += clean_text(received[: len(received) - len(self._pending)])
        reasoning = chunk.reasoning if self.reasoning else chunk.reasoning.lstrip()
        self.reasoning += clean_text(reasoning)[: _MAX_REASONING - len(self.reasoning)]
        self.usage = chunk.usage or self.usage
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.system_fingerprint = chunk.system_fingerprint or self.system_fingerprint
        self._collect_details(chunk)
        self._received_chars += len(chunk.text) + len(chunk.reasoning)
        if len(self.text) > self._max_chars:
            self.text = self.text[: self._max_chars]
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
    def citations(self) -> Citations | None:
        """The recalled passages, None before the start."""
        return self._renderer.citations

    @property
    def cited(self) -> Sequence[int]:
        """The numbers of the passages that the rendered blocks cite, in order."""
        return self._renderer.cited

    @property
    def has_unrendered_text(self) -> bool:
        """Return whether received text is not rendered yet."""
        return len(self.text) > self._rendered_chars

    def render_new(self) -> None:
        """Render the text received since the last flush, at most 16,000 characters."""
        had_segments = self._renderer.has_segments
        # Read once: this runs in a thread while the text grows.
        text = self.text[self._rendered_chars : self._rendered_chars + _MAX_RENDERED_CHARS]
        finished = self._renderer.feed(text)
        if finished and had_segments:
            self._segments, self._is_reset = [], True
        self._finished += finished
        self._segments += self._renderer.segments()
        self._rendered_chars += len(text)
        self.revision += 1

    def collect_reasoning(self) -> bool:
        """Include the reasoning received so far in the next checkpoint; return whether it has grown."""
        if len(self.reasoning) == self._published_reasoning:
            return False
        self._collected_reasoning = len(self.reasoning)
        self.revision += 1
        return True

    @property
    def needs_save_before_publish(self) -> bool:
        """Return whether the next frame contains parts that are sent only once, which later pages read from the row."""
        return bool(self._finished or self._segments) or self._collected_reasoning > self._published_reasoning

    def is_save_due(self, now: float) -> bool:
        """Return whether a part is ready to be published, or the last save is 0.5 s old."""
        return bool(self._finished or self._segments) or now - self.saved_at >= _SAVE_INTERVAL

    def checkpoint(self) -> AnswerCheckpoint:
        """Return the state to save: the rendered text, without what was received since."""
        reasoning = self.reasoning[: self._collected_reasoning]
        text = self.text[: self._rendered_chars]
        used = self.meter.total()
        job = self.job
        return AnswerCheckpoint(job.turn_id, job.attempt, text, reasoning, self.revision, used, self.is_refusal)

    def frame(self) -> Frame:
        """Return a frame with new reasoning, finished blocks and segments (each sent once), and the open block."""
        finished, segments, is_reset = self._finished, self._segments, self._is_reset
        reasoning = self._new_reasoning()
        self.discard_frame()
        return frames.answer_progress(
            self.job.thread_id,
            self.job.turn_id,
            self.revision,
            finished,
            self._renderer.open_html(),
            segments=segments,
            is_reset=is_reset,
            is_first=not self._renderer.has_finished,
            reasoning=reasoning,
        )

    def discard_frame(self) -> None:
        """Leave out what the next frame would contain; pages read it from the row."""
        self._finished, self._segments, self._is_reset = [], [], False
        self._published_reasoning = self._collected_reasoning

    def drain(self) -> tuple[list[str], str]:
        """Return the unpublished blocks and reasoning of a finished answer."""
        while self.has_unrendered_text:
            self.render_new()
        self.collect_reasoning()
        finished, self._finished = [*self._finished, *self._renderer.close()], []
        self.has_blocks = self._renderer.has_finished or bool(finished)
        return finished, self._new_reasoning()

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

    def _new_reasoning(self) -> str:
        reasoning = self.reasoning[self._published_reasoning : self._collected_reasoning]
        self._published_reasoning = self._collected_reasoning
        return reasoning

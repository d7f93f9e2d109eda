"""One answer under way: what was heard of it, what of that is shown and kept, and how it ended."""

from __future__ import annotations

import asyncio

from django.conf import settings

from chat.answers.persistence import AnswerCheckpoint, AnswerJob, AnswerOutcome, PreparedAnswer
from chat.llm.events import StreamChunk
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.hub import Frame
from chat.rendering.blocks import GrowingAnswer
from memory.api import clean_text

_SAVE_INTERVAL = 0.5
_MAX_REASONING = 200_000
_MAX_RENDERED_CHARS = 16_000  # characters that one pulse takes in; an endpoint may send faster than they can be drawn


class AnswerStream:
    """One answer under way."""

    def __init__(self, job: AnswerJob) -> None:
        self.job = job
        self.text = job.partial_answer
        self.reasoning = job.reasoning
        self.revision = job.revision
        self.usage: dict[str, int] | None = None
        self.finish_reason = ""
        self.is_full = False
        self.model = job.model or (job.endpoint.model if job.endpoint else "")
        self.stopped = asyncio.Event()
        self.is_blind = False
        self.has_lost_lease = False
        self.has_lost_access = False
        self.has_started = False
        self.is_finished = False
        self.is_awaiting_save = False
        self.saved_at = 0.0
        # Since when the model is being waited for; None: it is not, or it has begun to speak.
        self.requested_at: float | None = None
        self._rendered_chars = len(self.text)
        self._collected_reasoning = self._published_reasoning = len(self.reasoning)
        self._renderer = GrowingAnswer(self.text)
        # One thing at a time is drawn of an answer, in another thread.
        self.render_lock = asyncio.Lock()
        self._finished: list[str] = []
        self._segments: list[str] = []
        self._is_reset = False
        self._pending = ""
        self._received_chars = 0

    def start(self, begun: PreparedAnswer) -> None:
        """From here on the row is this reply's to write."""
        self.revision = begun.revision
        self._renderer.citations = begun.citations
        self.has_started = True

    def feed(self, piece: StreamChunk) -> None:
        """Take in a piece, cleaned; half of a line end or of a surrogate pair waits for its other half.

        Nothing is taken in beyond the longest an answer may be: it is cut off there.
        """
        received = self._pending + piece.text
        self._pending = received[-1:] if received[-1:] == "\r" or "\ud800" <= received[-1:] <= "\udbff" else ""
        self.text += clean_text(received[: len(received) - len(self._pending)])
        thought = piece.reasoning if self.reasoning else piece.reasoning.lstrip()
        self.reasoning += clean_text(thought)[: _MAX_REASONING - len(self.reasoning)]
        self.usage = piece.usage or self.usage
        self.finish_reason = piece.finish_reason or self.finish_reason
        self._received_chars += len(piece.text) + len(piece.reasoning)
        limit = settings.CATO.chat.max_answer_chars
        if len(self.text) > limit:
            self.text = self.text[:limit]
        if len(self.text) >= limit or self._received_chars > limit + _MAX_REASONING:
            self.is_full, self.finish_reason = True, Turn.FinishReason.LENGTH

    @property
    def has_unrendered_text(self) -> bool:
        """Whether something came that no pulse has taken in."""
        return len(self.text) > self._rendered_chars

    def render_new(self) -> None:
        """Take in what came since the last pulse, or as much of it as is drawn at once."""
        had_segments = self._renderer.has_segments
        # Read once: this runs in a thread, and the text grows meanwhile.
        text = self.text[self._rendered_chars : self._rendered_chars + _MAX_RENDERED_CHARS]
        finished = self._renderer.feed(text)
        if finished and had_segments:
            self._segments, self._is_reset = [], True
        self._finished += finished
        self._segments += self._renderer.segments()
        self._rendered_chars += len(text)
        self.revision += 1

    def render_frame(self) -> Frame | None:
        """Take in what came; the frame with it, unless its row must be saved first."""
        self.render_new()
        return None if self.needs_save_before_publish else self.frame()

    def collect_reasoning(self) -> bool:
        """Take in what was thought, right before it is saved; whether there is something new of it to show."""
        if len(self.reasoning) == self._published_reasoning:
            return False
        self._collected_reasoning = len(self.reasoning)
        self.revision += 1
        return True

    @property
    def needs_save_before_publish(self) -> bool:
        """Whether the next frame gives something away once, so that a page which comes later needs it from the row."""
        return bool(self._finished or self._segments) or self._collected_reasoning > self._published_reasoning

    def is_save_due(self, now: float) -> bool:
        return bool(self._finished or self._segments) or now - self.saved_at >= _SAVE_INTERVAL

    def checkpoint(self) -> AnswerCheckpoint:
        """What the row is to hold: exactly what has been taken in, not what came since."""
        reasoning = self.reasoning[: self._collected_reasoning]
        return AnswerCheckpoint(
            self.job.turn_id, self.job.attempt, self.text[: self._rendered_chars], reasoning, self.revision
        )

    def frame(self) -> Frame:
        """What was thought, the finished blocks and segments, given away once, and the rest of the open block."""
        finished, self._finished = self._finished, []
        segments, self._segments = self._segments, []
        is_reset, self._is_reset = self._is_reset, False
        return frames.answer_progress(
            self.job.thread_id,
            self.job.turn_id,
            self.revision,
            finished,
            self._renderer.open_html(),
            segments=segments,
            is_reset=is_reset,
            is_first=not self._renderer.has_finished,
            thought=self._new_thought(),
        )

    def drain(self) -> tuple[list[str], str]:
        """What pages do not have yet of an answer that is over: its last blocks, and what was thought last."""
        while self.has_unrendered_text:
            self.render_new()
        self.collect_reasoning()
        finished, self._finished = [*self._finished, *self._renderer.close()], []
        return finished, self._new_thought()

    def build_outcome(self, state: str, error_code: str = "", error: str = "") -> AnswerOutcome:
        """How it ended, with all that was said and thought until then."""
        known = self.finish_reason in Turn.FinishReason.values
        return AnswerOutcome(
            state,
            self.text,
            self.reasoning,
            self.model,
            self.usage,
            finish_reason=(self.finish_reason if known else Turn.FinishReason.STOP)
            if state == Turn.State.COMPLETE
            else "",
            error_code=error_code,
            error=error,
            is_blind=self.is_blind,
        )

    def _new_thought(self) -> str:
        thought = self.reasoning[self._published_reasoning : self._collected_reasoning]
        self._published_reasoning = self._collected_reasoning
        return thought

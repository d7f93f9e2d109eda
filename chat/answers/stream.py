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

_SAVE_EVERY = 0.5
_LONGEST_REASONING = 200_000
_AT_ONCE = 16_000  # characters that one pulse takes in; an endpoint may send faster than they can be drawn


class AnswerStream:
    """One answer under way."""

    def __init__(self, brief: AnswerJob) -> None:
        self.brief = brief
        self.text = brief.said_so_far
        self.reasoning = brief.reasoning
        self.revision = brief.revision
        self.usage: dict[str, int] | None = None
        self.finish_reason = ""
        self.is_full = False
        self.model = brief.model or (brief.answering.model if brief.answering else "")
        self.stopped = asyncio.Event()
        self.is_blind = False
        self.is_taken = False
        self.has_lost_access = False
        self.has_begun = False
        self.is_over = False
        self.is_held = False
        self.saved_at = 0.0
        # Since when the model is being waited for; None: it is not, or it has begun to speak.
        self.asked_at: float | None = None
        self._shown = len(self.text)
        self._kept_reasoning = self._shown_reasoning = len(self.reasoning)
        self._growing = GrowingAnswer(self.text)
        # One thing at a time is drawn of an answer, in another thread.
        self.drawing = asyncio.Lock()
        self._finished: list[str] = []
        self._segments: list[str] = []
        self._is_reset = False
        self._held = ""
        self._heard = 0

    def begin(self, begun: PreparedAnswer) -> None:
        """From here on the row is this reply's to write."""
        self.revision = begun.revision
        self._growing.citations = begun.citations
        self.has_begun = True

    def hear(self, piece: StreamChunk) -> None:
        """Take in a piece, cleaned; half of a line end or of a surrogate pair waits for its other half.

        Nothing is taken in beyond the longest an answer may be: it is cut off there.
        """
        heard = self._held + piece.text
        self._held = heard[-1:] if heard[-1:] == "\r" or "\ud800" <= heard[-1:] <= "\udbff" else ""
        self.text += clean_text(heard[: len(heard) - len(self._held)])
        thought = piece.reasoning if self.reasoning else piece.reasoning.lstrip()
        self.reasoning += clean_text(thought)[: _LONGEST_REASONING - len(self.reasoning)]
        self.usage = piece.usage or self.usage
        self.finish_reason = piece.finish_reason or self.finish_reason
        self._heard += len(piece.text) + len(piece.reasoning)
        most = settings.CATO.chat.max_answer_chars
        if len(self.text) > most:
            self.text = self.text[:most]
        if len(self.text) >= most or self._heard > most + _LONGEST_REASONING:
            self.is_full, self.finish_reason = True, Turn.FinishReason.LENGTH

    @property
    def has_news(self) -> bool:
        """Whether something came that no pulse has taken in."""
        return len(self.text) > self._shown

    def advance(self) -> None:
        """Take in what came since the last pulse, or as much of it as is drawn at once."""
        had_segments = self._growing.has_segments
        # Read once: this runs in a thread, and the text grows meanwhile.
        text = self.text[self._shown : self._shown + _AT_ONCE]
        finished = self._growing.feed(text)
        if finished and had_segments:
            self._segments, self._is_reset = [], True
        self._finished += finished
        self._segments += self._growing.segments()
        self._shown += len(text)
        self.revision += 1

    def draw(self) -> Frame | None:
        """Take in what came; the frame with it, unless its row must be saved first."""
        self.advance()
        return None if self.needs_save_before_publish else self.frame()

    def think(self) -> bool:
        """Take in what was thought, right before it is saved; whether there is something new of it to show."""
        if len(self.reasoning) == self._shown_reasoning:
            return False
        self._kept_reasoning = len(self.reasoning)
        self.revision += 1
        return True

    @property
    def needs_save_before_publish(self) -> bool:
        """Whether the next frame gives something away once, so that a page which comes later needs it from the row."""
        return bool(self._finished or self._segments) or self._kept_reasoning > self._shown_reasoning

    def must_be_saved(self, now: float) -> bool:
        return bool(self._finished or self._segments) or now - self.saved_at >= _SAVE_EVERY

    def saved(self) -> AnswerCheckpoint:
        """What the row is to hold: exactly what has been taken in, not what came since."""
        reasoning = self.reasoning[: self._kept_reasoning]
        return AnswerCheckpoint(
            self.brief.turn_id, self.brief.attempt, self.text[: self._shown], reasoning, self.revision
        )

    def frame(self) -> Frame:
        """What was thought, the finished blocks and segments, given away once, and the rest of the open block."""
        finished, self._finished = self._finished, []
        segments, self._segments = self._segments, []
        is_reset, self._is_reset = self._is_reset, False
        return frames.answer_progress(
            self.brief.thread_id,
            self.brief.turn_id,
            self.revision,
            finished,
            self._growing.open_html(),
            segments=segments,
            is_reset=is_reset,
            is_first=not self._growing.has_finished,
            thought=self._new_thought(),
        )

    def rest(self) -> tuple[list[str], str]:
        """What pages do not have yet of an answer that is over: its last blocks, and what was thought last."""
        while self.has_news:
            self.advance()
        self.think()
        finished, self._finished = [*self._finished, *self._growing.close()], []
        return finished, self._new_thought()

    def ending(self, state: str, error_code: str = "", error: str = "") -> AnswerOutcome:
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
        thought = self.reasoning[self._shown_reasoning : self._kept_reasoning]
        self._shown_reasoning = self._kept_reasoning
        return thought

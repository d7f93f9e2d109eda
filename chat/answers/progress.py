"""How far a growing answer is rendered, saved and published."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence

from chat.models import Turn
from chat.realtime import frames
from chat.realtime.messages import Frame
from chat.rendering.blocks import GrowingAnswer
from chat.rendering.citations import Citations

_SAVE_INTERVAL = 0.5  # seconds
_MAX_RENDERED_CHARS = 16_000  # per flush; an endpoint can send faster than the text can be rendered


class AnswerProgress:
    """The rendered part of a growing answer, with the blocks and reasoning that wait for a save or for a frame.

    The next checkpoint saves `text`, the rendered text, and `reasoning`. `revision` is that of the row and of the frames.
    """

    def __init__(self, turn: Turn) -> None:
        self.text, self.reasoning, self.revision = turn.answer, turn.reasoning, turn.revision
        self.saved_at = 0.0
        self.is_awaiting_save = False
        # Whether the answer has any block, known once it is drained.
        self.has_blocks = False
        # Rendering runs in another thread, one call at a time per answer.
        self.render_lock = asyncio.Lock()
        self._renderer = GrowingAnswer(turn.answer)
        self._published_reasoning = len(turn.reasoning)
        self._finished: list[str] = []
        self._segments: list[str] = []
        self._is_reset = False

    def start(self, revision: int, citations: Citations) -> None:
        """Begin with this revision of the row. The text of an answer that is resumed cites these passages, too."""
        self.revision = revision
        self._renderer = GrowingAnswer(self.text, citations)
        self.saved_at = time.monotonic()

    @property
    def citations(self) -> Citations | None:
        """The recalled passages, None before the start."""
        return self._renderer.citations

    @citations.setter
    def citations(self, citations: Citations) -> None:
        self._renderer.citations = citations

    @property
    def cited(self) -> Sequence[int]:
        """The numbers of the passages that the rendered blocks cite, in order."""
        return self._renderer.cited

    def render(self, text: str) -> None:
        """Render the new part of `text`, which is the whole answer so far; at most 16,000 characters."""
        had_segments = self._renderer.has_segments
        new = text[len(self.text) : len(self.text) + _MAX_RENDERED_CHARS]
        finished = self._renderer.feed(new)
        if finished and had_segments:
            self._segments, self._is_reset = [], True
        self._finished += finished
        self._segments += self._renderer.segments()
        self.text += new
        self.revision += 1

    def take_reasoning(self, reasoning: str) -> None:
        """Include the reasoning so far in the next checkpoint and frame."""
        if len(reasoning) > self._published_reasoning:
            self.reasoning = reasoning
            self.revision += 1

    @property
    def needs_save_before_publish(self) -> bool:
        """Return whether the next frame contains parts that are sent only once, which later pages read from the row."""
        return self._has_parts or len(self.reasoning) > self._published_reasoning

    def is_save_due(self, now: float) -> bool:
        """Return whether a part is ready to be published, or the last save is 0.5 s old."""
        return self._has_parts or now - self.saved_at >= _SAVE_INTERVAL

    @property
    def _has_parts(self) -> bool:
        return bool(self._finished or self._segments)

    def frame(self, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Frame:
        """Return a frame with new reasoning, finished blocks and segments (each sent once), and the open block."""
        finished, segments, is_reset = self._finished, self._segments, self._is_reset
        reasoning = self._new_reasoning()
        self.discard_frame()
        return frames.answer_progress(
            thread_id,
            turn_id,
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
        self._published_reasoning = len(self.reasoning)

    def drain(self, text: str, reasoning: str) -> tuple[list[str], str]:
        """Render the rest of a finished answer; return its blocks and reasoning that are not published."""
        while len(text) > len(self.text):
            self.render(text)
        self.take_reasoning(reasoning)
        finished, self._finished = [*self._finished, *self._renderer.close()], []
        self.has_blocks = self._renderer.has_finished or bool(finished)
        return finished, self._new_reasoning()

    def _new_reasoning(self) -> str:
        new = self.reasoning[self._published_reasoning :]
        self._published_reasoning = len(self.reasoning)
        return new

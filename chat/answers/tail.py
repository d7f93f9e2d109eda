"""Running answers as plain text, for API clients."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from chat.answers import runner
from chat.executors import run_in_db_thread
from chat.llm.logprobs import Logprobs, load_logprobs
from chat.models import Turn
from memory.api import NotFoundError

_LOCAL_INTERVAL, _ROW_INTERVAL = 0.04, 0.3  # seconds between reads of a stream of this process, and of a row
_CHECK_INTERVAL = 2.0  # seconds between access checks


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """New text of an answer, and the logprobs that arrived with it if its client requested them."""

    text: str
    is_refusal: bool
    system_fingerprint: str
    logprobs: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _AnswerState:
    """An answer as it is now."""

    text: str = ""
    is_refusal: bool = False
    system_fingerprint: str = ""
    logprobs: Logprobs | None = None
    is_finished: bool = False


async def tail_answer(turn_id: uuid.UUID, can_receive: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield the text of the answer to this turn in parts, as `tail_answer_parts` does."""
    async with aclosing(tail_answer_parts(turn_id, can_receive)) as parts:
        async for part in parts:
            if part.text:
                yield part.text


async def tail_answer_parts(turn_id: uuid.UUID, can_receive: Callable[[], bool]) -> AsyncGenerator[AnswerPart, None]:
    """Yield the answer to this turn in parts, from its beginning until it ends.

    The answer continues when the client stops reading. `can_receive` is called every two seconds in a database thread.
    Raises NotFoundError once it returns False.
    """
    sent = sent_logprobs = 0
    checked_at = time.monotonic()
    while True:
        if time.monotonic() - checked_at >= _CHECK_INTERVAL:
            if not await run_in_db_thread(can_receive):
                raise NotFoundError
            checked_at = time.monotonic()
        stream = runner.get_running(turn_id)
        if stream is None:
            state = await run_in_db_thread(_saved_state, turn_id)
        else:
            state = _AnswerState(stream.text, stream.is_refusal, stream.system_fingerprint, stream.logprobs)
        logprobs = state.logprobs.since(sent_logprobs) if state.logprobs else None
        if len(state.text) > sent or logprobs:
            part = AnswerPart(state.text[sent:], state.is_refusal, state.system_fingerprint, logprobs)
            sent, sent_logprobs = max(sent, len(state.text)), len(state.logprobs or ())
            yield part
        if state.is_finished:
            return
        await asyncio.sleep(_LOCAL_INTERVAL if stream else _ROW_INTERVAL)


def _saved_state(turn_id: uuid.UUID) -> _AnswerState:
    """Return the saved answer; one that has ended has its logprobs, for some minutes."""
    fields = ("answer", "is_refusal", "system_fingerprint", "state", "generation_options__logprobs")
    turn = Turn.objects.filter(id=turn_id).values(*fields).first()
    if turn is None:
        return _AnswerState(is_finished=True)
    is_finished = turn["state"] not in (*Turn.RUNNING_STATES, Turn.State.QUEUED)
    # A forgotten answer has no text.
    has_logprobs = is_finished and turn["answer"] and turn["generation_options__logprobs"]
    logprobs = load_logprobs(turn_id) if has_logprobs else None
    return _AnswerState(turn["answer"], turn["is_refusal"], turn["system_fingerprint"], logprobs, is_finished)

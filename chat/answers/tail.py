"""Running answers as plain text, for API clients."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable

from chat.answers import runner
from chat.executors import run_in_db_thread
from chat.models import Turn
from memory.api import NotFoundError

_LOCAL_INTERVAL, _ROW_INTERVAL = 0.04, 0.3  # seconds between reads of a stream of this process, and of a row
_CHECK_INTERVAL = 2.0  # seconds between access checks


async def tail_answer(turn_id: uuid.UUID, can_receive: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield the text of the answer to this turn in parts, from its beginning until the answer ends.

    The answer continues when the client stops reading. `can_receive` is called every two seconds in a database thread.
    Raises NotFoundError once it returns False.
    """
    sent = 0
    checked_at = time.monotonic()
    while True:
        if time.monotonic() - checked_at >= _CHECK_INTERVAL:
            if not await run_in_db_thread(can_receive):
                raise NotFoundError
            checked_at = time.monotonic()
        stream = runner.get_running(turn_id)
        if stream is None:
            text, is_finished = await run_in_db_thread(_saved_text, turn_id)
        else:
            text, is_finished = stream.text, False
        if len(text) > sent:
            yield text[sent:]
            sent = len(text)
        if is_finished:
            return
        await asyncio.sleep(_LOCAL_INTERVAL if stream else _ROW_INTERVAL)


def _saved_text(turn_id: uuid.UUID) -> tuple[str, bool]:
    """Return the saved text of the answer, and whether the answer has ended."""
    turn = Turn.objects.filter(id=turn_id).values("answer", "state").first()
    if turn is None:
        return "", True
    return turn["answer"], turn["state"] not in (*Turn.RUNNING_STATES, Turn.State.QUEUED)

"""An answer as it grows, for API clients that read it as plain text rather than as frames of a page."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable

from chat.answers import runner
from chat.executors import run_in_db_thread
from chat.models import Turn
from memory.api import NotFoundError

# Seconds between looks at an answer of this process, and at a row that another process writes.
_POLL_LOCAL, _POLL_ROW = 0.04, 0.3
# Seconds between checks that whoever reads may still do so.
_CHECK_INTERVAL = 2.0


async def tail_answer(turn_id: uuid.UUID, may_receive: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield the text of the answer to this turn, piece by piece from its beginning, until it ended one way or another.

    The turn's row says how it ended. A client that stops reading stops nothing: the answer goes on without it.
    `may_receive` is called every two seconds in a database thread. Raises NotFoundError once it returns False.
    """
    given = 0
    checked_at = time.monotonic()
    while True:
        if time.monotonic() - checked_at >= _CHECK_INTERVAL:
            if not await run_in_db_thread(may_receive):
                raise NotFoundError
            checked_at = time.monotonic()
        stream = runner.get_running(turn_id)
        if stream is None:
            text, is_finished = await run_in_db_thread(_text_of, turn_id)
        else:
            text, is_finished = stream.text, False
        if len(text) > given:
            yield text[given:]
            given = len(text)
        if is_finished:
            return
        await asyncio.sleep(_POLL_LOCAL if stream else _POLL_ROW)


def _text_of(turn_id: uuid.UUID) -> tuple[str, bool]:
    """The saved text of the answer, and whether it ended."""
    turn = Turn.objects.filter(id=turn_id).values("answer", "state").first()
    if turn is None:
        return "", True
    return turn["answer"], turn["state"] not in (*Turn.RUNNING_STATES, Turn.State.QUEUED)

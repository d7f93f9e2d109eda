"""An answer as it grows, for whoever reads along as plain text rather than as frames of a page."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

from chat import replies
from chat.hops import to_database
from chat.models import Turn

_HERE, _ELSEWHERE = 0.04, 0.3  # seconds between looks at an answer of this process, and at a row another one writes


async def follow(turn_id: uuid.UUID) -> AsyncIterator[str]:
    """What the answer to this turn says, piece by piece from its beginning, until it ended one way or another.

    How it ended, its row tells then. Who stops listening stops nothing: an answer goes on without anybody.
    """
    given = 0
    while True:
        reply = replies.under_way(turn_id)
        if reply is None:
            text, is_over = await to_database(_said, turn_id)
        else:
            text, is_over = reply.text, False
        if len(text) > given:
            yield text[given:]
            given = len(text)
        if is_over:
            return
        await asyncio.sleep(_HERE if reply else _ELSEWHERE)


def _said(turn_id: uuid.UUID) -> tuple[str, bool]:
    turn = Turn.objects.filter(id=turn_id).values("answer", "state").first()
    if turn is None:
        return "", True
    return turn["answer"], turn["state"] not in (*Turn.ACTIVE, Turn.State.QUEUED)

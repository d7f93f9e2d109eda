"""Watches who listens: those who signed out, were deactivated or lost access are let go within seconds."""

from __future__ import annotations

import asyncio
import contextvars
import logging

from django.db import DatabaseError

from chat import access
from chat.broadcast import Seat
from chat.hops import to_database

log = logging.getLogger(__name__)

_EVERY = 3.0
_watched: dict[Seat, access.Seat] = {}
_task: asyncio.Task[None] | None = None


def watch(who: access.Seat, seat: Seat) -> None:
    """Keep asking whether `who` may still listen, and end `seat` when not."""
    global _task
    _watched[seat] = who
    if _task is None or _task.done():
        _task = asyncio.get_running_loop().create_task(_watch(), context=contextvars.Context())


def unwatch(seat: Seat) -> None:
    _watched.pop(seat, None)


async def _watch() -> None:
    while _watched:
        await asyncio.sleep(_EVERY)
        asked = dict(_watched)
        try:
            allowed = await to_database(access.still_allowed, asked.values())
        except DatabaseError as error:
            # Nobody can be asked; whoever may not listen must not hear, so everyone comes back and is asked then.
            log.warning("readers could not be checked (%s); pages come back", type(error).__name__)
            allowed = set()
        for seat, who in asked.items():
            if who not in allowed:
                seat.end()

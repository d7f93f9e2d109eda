"""Watches who listens: those who lost access are let go within seconds, and those who share a thread see each other."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid

from django.db import DatabaseError

from chat import access
from chat.executors import run_in_db_thread
from chat.realtime import frames, presence
from chat.realtime.hub import Subscriber, hub

log = logging.getLogger(__name__)

_EVERY = 3.0
_watched: dict[Subscriber, access.SocketIdentity] = {}
_shown: dict[uuid.UUID, tuple[presence.PresentUser, ...]] = {}
_task: asyncio.Task[None] | None = None


def watch(who: access.SocketIdentity, seat: Subscriber) -> None:
    """Keep asking whether `who` may still listen, and end `seat` when not."""
    global _task
    _watched[seat] = who
    if _task is None or _task.done():
        _task = asyncio.get_running_loop().create_task(_watch(), context=contextvars.Context())


def unwatch(seat: Subscriber) -> None:
    _watched.pop(seat, None)


async def _watch() -> None:
    while _watched:
        await asyncio.sleep(_EVERY)
        asked = dict(_watched)
        try:
            allowed = await run_in_db_thread(access.authorize_sockets, asked.values())
        except DatabaseError as error:
            # Nobody can be asked; whoever may not listen must not hear, so everyone comes back and is asked then.
            log.warning("readers could not be checked (%s); pages come back", type(error).__name__)
            allowed = set()
        for seat, who in asked.items():
            if who not in allowed:
                seat.end()
        await _tell_who_is_here({who for who in allowed if who.thread_id})


async def _tell_who_is_here(present: set[access.SocketIdentity]) -> None:
    """Note who is where, and tell the pages of this process where that is not what they show."""
    places = {(who.thread_id, who.person_id) for who in present if who.thread_id}
    try:
        await run_in_db_thread(presence.record_presence, places)
        here = await run_in_db_thread(presence.present_users, {thread_id for thread_id, _ in places})
    except DatabaseError as error:
        log.warning("nobody could be told who is here (%s)", type(error).__name__)
        return
    for thread_id in {thread_id for thread_id, _ in places} | set(_shown):
        people = here.get(thread_id, ())
        if _shown.get(thread_id, ()) != people:
            hub.publish_here(frames.presence(thread_id, people))
        if people:
            _shown[thread_id] = people
        else:
            _shown.pop(thread_id, None)

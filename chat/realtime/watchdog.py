"""Checks the access of running answers and open sockets, and publishes presence."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from collections.abc import Mapping

from django.db import DatabaseError

from chat import access
from chat.answers.stream import AnswerStream
from chat.executors import run_in_db_thread
from chat.realtime import frames, presence
from chat.realtime.hub import Subscriber, hub

log = logging.getLogger(__name__)

_INTERVAL = 3.0  # seconds
_ANSWER_INTERVAL = 2.0  # seconds; an answer ends within three seconds after its author loses access
_watched: dict[Subscriber, access.SocketIdentity] = {}
_published: dict[uuid.UUID, tuple[presence.PresentUser, ...]] = {}
_task: asyncio.Task[None] | None = None


def watch(identity: access.SocketIdentity, subscriber: Subscriber) -> None:
    """Check this identity regularly, and close its subscriber once it has lost access."""
    global _task
    _watched[subscriber] = identity
    if _task is None or _task.done():
        _task = asyncio.get_running_loop().create_task(_watch(), context=contextvars.Context())


def unwatch(subscriber: Subscriber) -> None:
    """Stop checking this subscriber."""
    _watched.pop(subscriber, None)


async def _watch() -> None:
    while _watched:
        await asyncio.sleep(_INTERVAL)
        watched = dict(_watched)
        try:
            allowed = await run_in_db_thread(access.authorize_sockets, watched.values())
        except DatabaseError as error:
            # Fail closed: all pages reconnect and are checked then.
            log.warning("sockets could not be authorized (%s); all pages reconnect", type(error).__name__)
            allowed = set()
        for subscriber, identity in watched.items():
            if identity not in allowed:
                subscriber.close()
        await _publish_presence({identity for identity in allowed if identity.thread_id})


async def _publish_presence(identities: set[access.SocketIdentity]) -> None:
    """Record who has which thread open, and publish changes to the pages of this process."""
    open_threads = {(identity.thread_id, identity.person_id) for identity in identities if identity.thread_id}
    thread_ids = {thread_id for thread_id, _ in open_threads}
    try:
        await run_in_db_thread(presence.record_presence, open_threads)
        present = await run_in_db_thread(presence.present_users, thread_ids)
    except DatabaseError as error:
        log.warning("presence could not be updated (%s)", type(error).__name__)
        return
    for thread_id in thread_ids | set(_published):
        people = present.get(thread_id, ())
        if _published.get(thread_id, ()) != people:
            hub.publish_local(frames.presence(thread_id, people))
        if people:
            _published[thread_id] = people
        else:
            _published.pop(thread_id, None)


async def watch_answers(running: Mapping[uuid.UUID, AnswerStream]) -> None:
    """Check the running answers, by turn, until there are none.

    Stop an answer once its author may no longer read the thread, or its API token is no longer valid.
    """
    while running:
        await asyncio.sleep(_ANSWER_INTERVAL)
        try:
            lost = await run_in_db_thread(access.turns_without_access, list(running))
        except DatabaseError as error:
            log.warning("the access of running answers could not be checked: %s", type(error).__name__)
            continue
        for turn_id in lost & running.keys():
            running[turn_id].has_lost_access = True
            running[turn_id].stopped.set()

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
_ARRIVALS_DELAY = 1.0  # seconds; a page that is loaded again leaves and comes back meanwhile
_watched: dict[Subscriber, access.SocketIdentity] = {}
_published: dict[uuid.UUID, frozenset[uuid.UUID]] = {}
_arrived_or_left: set[presence.Presence] = set()
_task: asyncio.Task[None] | None = None
_arrivals_task: asyncio.Task[None] | None = None


def watch(identity: access.SocketIdentity, subscriber: Subscriber) -> None:
    """Check this identity regularly, and close its subscriber once it has lost access."""
    global _task
    _watched[subscriber] = identity
    if _task is None or _task.done():
        _task = asyncio.get_running_loop().create_task(_watch(), context=contextvars.Context())
    _note_arrival_or_departure(identity)


def unwatch(subscriber: Subscriber) -> None:
    """Stop checking this subscriber."""
    identity = _watched.pop(subscriber, None)
    if identity is not None:
        _note_arrival_or_departure(identity)


def _note_arrival_or_departure(identity: access.SocketIdentity) -> None:
    """Publish soon that this person has opened or left the thread of the socket, if any, together with others."""
    global _arrivals_task
    if identity.thread_id is None:
        return
    _arrived_or_left.add((identity.thread_id, identity.person_id))
    if _arrivals_task is None or _arrivals_task.done():
        _arrivals_task = asyncio.get_running_loop().create_task(
            _publish_arrivals_and_departures(), context=contextvars.Context()
        )


async def _publish_arrivals_and_departures() -> None:
    while _arrived_or_left:
        await asyncio.sleep(_ARRIVALS_DELAY)
        changed = set(_arrived_or_left)
        _arrived_or_left.clear()
        present = {(identity.thread_id, identity.person_id) for identity in _watched.values()}
        try:
            thread_ids = await run_in_db_thread(
                presence.record_arrivals_and_departures, changed & present, changed - present
            )
            changed_frames = await run_in_db_thread(frames.presence, thread_ids)
        except DatabaseError as error:
            log.warning("presence could not be updated (%s)", type(error).__name__)
            continue
        for frame in changed_frames:
            hub.publish(frame)


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
        await _publish_presence(allowed)


async def _publish_presence(identities: set[access.SocketIdentity]) -> None:
    """Record who has which thread open, and publish changes to the pages of this process."""
    open_threads = {(identity.thread_id, identity.person_id) for identity in identities if identity.thread_id}
    thread_ids = {thread_id for thread_id, _ in open_threads}
    try:
        await run_in_db_thread(presence.record_presence, open_threads)
        present = await run_in_db_thread(presence.present_people, thread_ids)
        changed = {id for id in thread_ids | set(_published) if _published.get(id) != present.get(id)}
        changed_frames = await run_in_db_thread(frames.presence, changed)
    except DatabaseError as error:
        log.warning("presence could not be updated (%s)", type(error).__name__)
        return
    for frame in changed_frames:
        hub.publish_local(frame)
    for thread_id in changed:
        _published.pop(thread_id, None)
    _published.update(present)


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

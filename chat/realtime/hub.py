"""Publish and subscribe for frames, in this process and, relayed by Redis, in the other web processes.

A subscriber whose queue is full is closed instead of losing frames; its page reconnects and syncs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from django.conf import settings

from chat.realtime.messages import (
    Frame,
    ListChange,
    ListChanges,
    decode_frame,
    decode_list_change,
    encode_frame,
    encode_thread_list_change,
)

log = logging.getLogger(__name__)

K = TypeVar("K")
_CHANNEL = "cato:frames"
_REGISTER_KEY = "cato:webs"
_NO_HUB = "outside"
_REGISTRATION_TTL = 30.0  # seconds
_MAX_QUEUED = 64
_MAX_UNSENT = 10_000


class ThreadListChanged(Enum):
    """The item in a subscriber's queue that is not a frame."""

    CHANGED = "the thread list has changed"


@dataclass(eq=False, slots=True)
class Subscriber:
    """An open page and its queue; None in the queue closes the socket with 1013, so that the page reconnects and syncs."""

    person_id: uuid.UUID
    thread_id: uuid.UUID | None
    queue: asyncio.Queue[Frame | ThreadListChanged | None] = field(
        default_factory=lambda: asyncio.Queue(_MAX_QUEUED + 2)
    )
    is_closed: bool = False
    list_changes: ListChanges | None = None

    def put(self, frame: Frame) -> None:
        """Queue a frame, or close the subscriber if its queue is full."""
        if self.is_closed:
            return
        if self.queue.qsize() >= _MAX_QUEUED:
            self.close()
        else:
            self.queue.put_nowait(frame)

    def notify_thread_list(self, change: ListChange | None = None) -> None:
        """Queue a change of a link, or of the whole thread list; changes until it is handled are handled with it."""
        if self.is_closed:
            return
        if self.list_changes is None:
            self.list_changes = ListChanges()
            self.queue.put_nowait(ThreadListChanged.CHANGED)
        self.list_changes.add(change)

    def take_list_changes(self) -> ListChanges:
        """Return the changes of the thread list; later ones are queued again."""
        changes, self.list_changes = self.list_changes or ListChanges(), None
        return changes

    def close(self) -> None:
        """Make the page reconnect."""
        if not self.is_closed:
            self.is_closed = True
            self.queue.put_nowait(None)


class Hub:
    """The subscribers of this process, and its connection to the other web processes."""

    def __init__(self) -> None:
        self.process = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.loop: asyncio.AbstractEventLoop | None = None
        self._by_thread: dict[uuid.UUID | None, set[Subscriber]] = defaultdict(set)
        self._by_person: dict[uuid.UUID, set[Subscriber]] = defaultdict(set)
        self._unsent: deque[str] = deque()
        self._wake = asyncio.Event()
        self._has_peers = False
        self._tasks: list[asyncio.Task[None]] = []
        self._on_stop: Callable[[uuid.UUID], None] = lambda turn_id: None

    async def open(self, on_stop: Callable[[uuid.UUID], None]) -> None:
        """Connect to the other processes; `on_stop` is called with the id of a turn to be stopped."""
        self.loop, self._on_stop = asyncio.get_running_loop(), on_stop
        if settings.REDIS_URL:
            ready = asyncio.Event()
            self._tasks = [asyncio.create_task(self._read(ready)), asyncio.create_task(self._write())]
            await asyncio.wait_for(ready.wait(), 10)

    async def close(self) -> None:
        """Close all subscribers and disconnect from the other processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if settings.REDIS_URL:
            await self._unregister()
        self._close_subscribers()
        self.loop = None

    def subscribe(self, person_id: uuid.UUID, thread_id: uuid.UUID | None) -> Subscriber:
        """Add a page, of a thread or without one."""
        subscriber = Subscriber(person_id, thread_id)
        self._by_thread[thread_id].add(subscriber)
        self._by_person[person_id].add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a page."""
        _discard(self._by_thread, subscriber.thread_id, subscriber)
        _discard(self._by_person, subscriber.person_id, subscriber)

    def count_subscribers(self) -> int:
        """Return the number of open pages of this process."""
        return sum(len(subscribers) for subscribers in list(self._by_thread.values()))

    def count_subscribers_of(self, person_id: uuid.UUID) -> int:
        """Return the number of this person's open pages of this process."""
        return len(self._by_person.get(person_id, ()))

    def notify_users(self, people: Sequence[uuid.UUID], change: ListChange | None = None) -> None:
        """Notify these people's pages in this process that their thread list changed; call it in the loop's thread."""
        for person_id in people:
            for subscriber in self._by_person.get(person_id, ()):
                subscriber.notify_thread_list(change)

    def notify_users_everywhere(self, people: Sequence[uuid.UUID], change: ListChange | None = None) -> None:
        """Notify these people's pages in all processes; call it in the loop's thread."""
        self.notify_users(people, change)
        if self._has_peers:
            self._send(encode_thread_list_change(self.process, people, change))

    def is_needed(self, thread_id: uuid.UUID) -> bool:
        """Return whether frames of this thread have to be rendered: a page is open here, or could be elsewhere."""
        return self.loop is None or self._has_peers or thread_id in self._by_thread

    def publish(self, frame: Frame) -> None:
        """Publish a frame to all pages of its thread; call it in the loop's thread."""
        self.publish_local(frame)
        if self._has_peers:
            self._send(encode_frame(self.process, frame))

    def publish_local(self, frame: Frame) -> None:
        """Publish a frame to the pages of its thread in this process; call it in the loop's thread."""
        for subscriber in list(self._by_thread.get(frame.thread_id, ())):
            subscriber.put(frame)

    def broadcast_stop(self, turn_id: uuid.UUID) -> None:
        """Stop this turn in all processes; call it in the loop's thread."""
        self._on_stop(turn_id)
        if self._has_peers:
            self._send(json.dumps({"from": self.process, "stop": str(turn_id)}))

    def _send(self, message: str) -> None:
        if len(self._unsent) < _MAX_UNSENT:
            self._unsent.append(message)
            self._wake.set()
        else:
            self._signal_resync()

    def _signal_resync(self) -> None:
        """Replace all unsent messages by one that makes the pages of the other processes reconnect."""
        self._unsent.clear()
        self._unsent.append(json.dumps({"from": self.process, "lost": True}))
        self._wake.set()

    def _close_subscribers(self) -> None:
        for subscribers in list(self._by_thread.values()):
            for subscriber in list(subscribers):
                subscriber.close()

    async def _read(self, ready: asyncio.Event) -> None:
        """Receive messages until cancelled; after a lost connection close all subscribers, which missed frames."""
        from redis.exceptions import RedisError

        while True:
            try:
                await self._listen(ready)
            except (RedisError, OSError) as error:
                log.warning("Redis subscription lost (%s); all pages reconnect", type(error).__name__)
                self._has_peers = True
                self._close_subscribers()
                ready.set()
                await asyncio.sleep(0.5)

    async def _listen(self, ready: asyncio.Event) -> None:
        client = _redis()
        try:
            async with client.pubsub() as subscription:
                await subscription.subscribe(_CHANNEL)
                await self._register(client)
                await client.publish(_CHANNEL, json.dumps({"from": self.process, "hello": True}))
                ready.set()
                renewed = time.monotonic()
                while True:
                    message = await subscription.get_message(ignore_subscribe_messages=True, timeout=5.0)
                    if message is not None:
                        self._receive(message["data"])
                    if time.monotonic() - renewed > 5:
                        await self._register(client)
                        renewed = time.monotonic()
        finally:
            await client.aclose()

    async def _register(self, client: Any) -> None:
        now = time.time()
        async with client.pipeline() as pipe:
            pipe.zremrangebyscore(_REGISTER_KEY, 0, now - _REGISTRATION_TTL)
            pipe.zadd(_REGISTER_KEY, {self.process: now})
            pipe.zcard(_REGISTER_KEY)
            *_, processes = await pipe.execute()
        self._has_peers = processes > 1

    async def _unregister(self) -> None:
        from redis.exceptions import RedisError

        client = _redis()
        try:
            await client.zrem(_REGISTER_KEY, self.process)
        except (RedisError, OSError) as error:
            log.info("this web process stays registered for a while (%s)", type(error).__name__)
        finally:
            await client.aclose()

    def _receive(self, data: str | bytes) -> None:
        """Handle a message; if it cannot be read, close all subscribers, which may have missed a frame."""
        try:
            self._on_message(json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError):
            # The other web processes can run another version of Cato.
            log.exception("a message of another web process could not be read; all pages reconnect")
            self._close_subscribers()

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["from"] == self.process:
            return
        if "hello" in message:
            self._has_peers = True
        elif "people" in message:
            self.notify_users([uuid.UUID(person_id) for person_id in message["people"]], decode_list_change(message))
        elif "lost" in message:
            self._close_subscribers()
        elif "stop" in message:
            self._on_stop(uuid.UUID(message["stop"]))
        else:
            self.publish_local(decode_frame(message))

    async def _write(self) -> None:
        from redis.exceptions import RedisError

        client = _redis()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._unsent:
                batch = [self._unsent.popleft() for _ in range(min(100, len(self._unsent)))]
                try:
                    async with client.pipeline(transaction=False) as pipe:
                        for message in batch:
                            pipe.publish(_CHANNEL, message)
                        await pipe.execute()
                except (RedisError, OSError) as error:
                    log.warning("frames for other web processes were lost (%s)", type(error).__name__)
                    await asyncio.sleep(0.5)
                    self._signal_resync()


def _discard(subscribers: dict[K, set[Subscriber]], key: K, subscriber: Subscriber) -> None:
    subscribers[key].discard(subscriber)
    if not subscribers[key]:
        del subscribers[key]


def publish_to_redis(frame: Frame) -> None:
    """Publish a frame to all web processes, from a process without pages (a worker, a command)."""
    _publish_synchronously(encode_frame(_NO_HUB, frame))


def notify_users(people: Iterable[uuid.UUID], change: ListChange | None = None) -> None:
    """Notify these people's pages that a link in their thread list changed, or all of it, from any thread of any process."""
    ids = list(people)
    if hub.loop is None:
        _publish_synchronously(encode_thread_list_change(_NO_HUB, ids, change))
    else:
        hub.loop.call_soon_threadsafe(hub.notify_users_everywhere, ids, change)


def count_web_processes() -> int:
    """Return the number of registered web processes; 0 if Redis does not answer."""
    if not settings.REDIS_URL:
        return 0
    import redis

    try:
        return int(_sync_redis().zcount(_REGISTER_KEY, time.time() - _REGISTRATION_TTL, "+inf"))
    except redis.RedisError:
        return 0


def is_connected() -> bool:
    """Return whether Redis answers; True without Redis, which a single process does not need."""
    if not settings.REDIS_URL:
        return True
    import redis

    try:
        return bool(_sync_redis().ping())
    except redis.RedisError:
        return False


def _publish_synchronously(message: str) -> None:
    if not settings.REDIS_URL:
        return
    import redis

    try:
        _sync_redis().publish(_CHANNEL, message)
    except redis.RedisError as error:
        log.warning("a change was not published (%s); pages show it once they are reloaded", type(error).__name__)


def publish(frame: Frame) -> None:
    """Publish a frame to all pages of its thread, from any thread of any process."""
    if hub.loop is None:
        publish_to_redis(frame)
    else:
        hub.loop.call_soon_threadsafe(hub.publish, frame)


def _redis() -> Any:
    import redis.asyncio

    # No socket timeout: redis-py would close a subscription without messages after 5 s.
    return redis.asyncio.from_url(
        str(settings.REDIS_URL), socket_timeout=None, socket_connect_timeout=2, max_connections=8
    )


def _sync_redis() -> Any:
    import redis

    global _sync
    if _sync is None:
        _sync = redis.from_url(str(settings.REDIS_URL), socket_timeout=2, socket_connect_timeout=1)
    return _sync


_sync: Any = None
hub = Hub()

"""Frames from whoever writes an answer to every page that shows its thread, in this process and in the others.

Nothing is dropped inside a seat: one that cannot keep up is ended, and its page comes back for a snapshot.
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

log = logging.getLogger(__name__)

K = TypeVar("K")
_CHANNEL = "cato:frames"
_REGISTER = "cato:webs"
_OUTSIDE = "outside"
_ALIVE_FOR = 30.0
_QUEUE = 64
_UNSENT = 10_000


@dataclass(frozen=True, slots=True)
class Frame:
    """HTML for the pages of a thread; `revision` orders it against a turn's row (None: it holds in any order).

    What stands under an answer is ordered by itself: memory may be done with a turn before the frame that ends it is
    sent, and neither may push the other out.
    """

    thread_id: uuid.UUID
    html: str
    turn_id: uuid.UUID | None = None
    revision: int | None = None
    is_foot: bool = False


class ThreadListChanged(Enum):
    """What a page is told beside frames."""

    THREADS = "the list of threads is not what it was"


@dataclass(eq=False, slots=True)
class Subscriber:
    """A page of somebody's that listens, most often to a thread: its queue ends with None when it must come back."""

    person_id: uuid.UUID
    thread_id: uuid.UUID | None
    queue: asyncio.Queue[Frame | ThreadListChanged | None] = field(default_factory=lambda: asyncio.Queue(_QUEUE + 2))
    is_ended: bool = False
    has_news: bool = False

    def give(self, frame: Frame) -> None:
        if self.is_ended:
            return
        if self.queue.qsize() >= _QUEUE:
            self.end()
        else:
            self.queue.put_nowait(frame)

    def tell(self) -> None:
        """The list of threads is to be drawn anew; told once until that was done."""
        if not self.has_news and not self.is_ended:
            self.has_news = True
            self.queue.put_nowait(ThreadListChanged.THREADS)

    def end(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self.queue.put_nowait(None)


class Hub:
    """The seats of this process and its line to the other web processes."""

    def __init__(self) -> None:
        self.process = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.loop: asyncio.AbstractEventLoop | None = None
        self._seats: dict[uuid.UUID | None, set[Subscriber]] = defaultdict(set)
        self._seats_of: dict[uuid.UUID, set[Subscriber]] = defaultdict(set)
        self._unsent: deque[str] = deque()
        self._wake = asyncio.Event()
        self._others = False
        self._tasks: list[asyncio.Task[None]] = []
        self._on_stop: Callable[[uuid.UUID], None] = lambda turn_id: None

    async def open(self, on_stop: Callable[[uuid.UUID], None]) -> None:
        """Begin to hear the other processes; `on_stop` is called with the turn somebody stops elsewhere."""
        self.loop, self._on_stop = asyncio.get_running_loop(), on_stop
        if settings.REDIS_URL:
            ready = asyncio.Event()
            self._tasks = [asyncio.create_task(self._read(ready)), asyncio.create_task(self._write())]
            await asyncio.wait_for(ready.wait(), 10)

    async def close(self) -> None:
        """End every seat and leave the other processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if settings.REDIS_URL:
            await self._unregister()
        self._end_all()
        self.loop = None

    def subscribe(self, person_id: uuid.UUID, thread_id: uuid.UUID | None) -> Subscriber:
        seat = Subscriber(person_id, thread_id)
        self._seats[thread_id].add(seat)
        self._seats_of[person_id].add(seat)
        return seat

    def unsubscribe(self, seat: Subscriber) -> None:
        _take_out(self._seats, seat.thread_id, seat)
        _take_out(self._seats_of, seat.person_id, seat)

    def count_subscribers(self) -> int:
        """How many pages listen to this process."""
        return sum(len(seats) for seats in list(self._seats.values()))

    def count_subscribers_of(self, person_id: uuid.UUID) -> int:
        """Return how many pages of this person listen to this process."""
        return len(self._seats_of.get(person_id, ()))

    def tell(self, people: Sequence[uuid.UUID]) -> None:
        """Tell every page of these people that their list of threads changed; call it in the loop's thread."""
        for person_id in people:
            for seat in self._seats_of.get(person_id, ()):
                seat.tell()

    def tell_all(self, people: Sequence[uuid.UUID]) -> None:
        """The same, and in the other processes too."""
        self.tell(people)
        if self._others:
            self._send(_packed_news(self.process, people))

    def publish(self, frame: Frame) -> None:
        """Give a frame to every page of its thread; call it in the loop's thread."""
        self._deliver(frame)
        if self._others:
            self._send(_packed(self.process, frame))

    def publish_here(self, frame: Frame) -> None:
        """Give a frame to the pages of its thread in this process alone; call it in the loop's thread."""
        self._deliver(frame)

    def broadcast_stop(self, turn_id: uuid.UUID) -> None:
        """Tell every process that this turn is to be stopped; call it in the loop's thread."""
        self._on_stop(turn_id)
        if self._others:
            self._send(json.dumps({"from": self.process, "stop": str(turn_id)}))

    def _send(self, message: str) -> None:
        if len(self._unsent) < _UNSENT:
            self._unsent.append(message)
            self._wake.set()
        else:
            self._say_lost()

    def _say_lost(self) -> None:
        """Frames could not be handed on: the other processes' pages must come back for snapshots."""
        self._unsent.clear()
        self._unsent.append(json.dumps({"from": self.process, "lost": True}))
        self._wake.set()

    def _deliver(self, frame: Frame) -> None:
        for seat in list(self._seats.get(frame.thread_id, ())):
            seat.give(frame)

    def _end_all(self) -> None:
        for seats in list(self._seats.values()):
            for seat in list(seats):
                seat.end()

    async def _read(self, ready: asyncio.Event) -> None:
        """Hear the others for as long as the process lives; a lost line ends the seats, for frames were missed."""
        from redis.exceptions import RedisError

        while True:
            try:
                await self._listen(ready)
            except (RedisError, OSError) as error:
                log.warning("the line to the other web processes broke (%s); pages come back", type(error).__name__)
                self._others = True
                self._end_all()
                ready.set()
                await asyncio.sleep(0.5)

    async def _listen(self, ready: asyncio.Event) -> None:
        client = _redis()
        try:
            async with client.pubsub() as line:
                await line.subscribe(_CHANNEL)
                await self._register(client)
                await client.publish(_CHANNEL, json.dumps({"from": self.process, "hello": True}))
                ready.set()
                renewed = time.monotonic()
                while True:
                    message = await line.get_message(ignore_subscribe_messages=True, timeout=5.0)
                    if message is not None:
                        self._hear(json.loads(message["data"]))
                    if time.monotonic() - renewed > 5:
                        await self._register(client)
                        renewed = time.monotonic()
        finally:
            await client.aclose()

    async def _register(self, client: Any) -> None:
        now = time.time()
        async with client.pipeline() as pipe:
            pipe.zremrangebyscore(_REGISTER, 0, now - _ALIVE_FOR)
            pipe.zadd(_REGISTER, {self.process: now})
            pipe.zcard(_REGISTER)
            *_, processes = await pipe.execute()
        self._others = processes > 1

    async def _unregister(self) -> None:
        from redis.exceptions import RedisError

        client = _redis()
        try:
            await client.zrem(_REGISTER, self.process)
        except (RedisError, OSError) as error:
            log.info("this web process stays registered for a while (%s)", type(error).__name__)
        finally:
            await client.aclose()

    def _hear(self, message: dict[str, Any]) -> None:
        if message["from"] == self.process:
            return
        if "hello" in message:
            self._others = True
        elif "people" in message:
            self.tell([uuid.UUID(person_id) for person_id in message["people"]])
        elif "lost" in message:
            self._end_all()
        elif "stop" in message:
            self._on_stop(uuid.UUID(message["stop"]))
        else:
            self._deliver(_unpacked(message))

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
                    self._say_lost()


def _take_out(seats: dict[K, set[Subscriber]], key: K, seat: Subscriber) -> None:
    seats[key].discard(seat)
    if not seats[key]:
        del seats[key]


def publish_to_redis(frame: Frame) -> None:
    """Give a frame to every web process, from one that serves no pages (a worker, a command)."""
    _send_from_outside(_packed(_OUTSIDE, frame))


def notify_users(people: Iterable[uuid.UUID]) -> None:
    """Have these people's pages draw their list of threads anew, from any thread of any process."""
    ids = list(people)
    if hub.loop is None:
        _send_from_outside(_packed_news(_OUTSIDE, ids))
    else:
        hub.loop.call_soon_threadsafe(hub.tell_all, ids)


def count_web_processes() -> int:
    """Return how many web processes are registered at this moment; 0 where Redis does not answer."""
    if not settings.REDIS_URL:
        return 0
    import redis

    try:
        return int(_sync_redis().zcount(_REGISTER, time.time() - _ALIVE_FOR, "+inf"))
    except redis.RedisError:
        return 0


def is_connected() -> bool:
    """Whether the line between the processes is there; one process alone needs none."""
    if not settings.REDIS_URL:
        return True
    import redis

    try:
        return bool(_sync_redis().ping())
    except redis.RedisError:
        return False


def _send_from_outside(message: str) -> None:
    if not settings.REDIS_URL:
        return
    import redis

    try:
        _sync_redis().publish(_CHANNEL, message)
    except redis.RedisError as error:
        log.warning("pages were not told of a change (%s); they show it when they are loaded", type(error).__name__)


def publish(frame: Frame) -> None:
    """Give a frame to every page of its thread, from any thread of any process."""
    if hub.loop is None:
        publish_to_redis(frame)
    else:
        hub.loop.call_soon_threadsafe(hub.publish, frame)


def _packed(process: str, frame: Frame) -> str:
    return json.dumps(
        {
            "from": process,
            "thread": str(frame.thread_id),
            "turn": str(frame.turn_id) if frame.turn_id else None,
            "revision": frame.revision,
            "is_foot": frame.is_foot,
            "html": frame.html,
        }
    )


def _packed_news(process: str, people: Sequence[uuid.UUID]) -> str:
    return json.dumps({"from": process, "people": [str(person_id) for person_id in people]})


def _unpacked(message: dict[str, Any]) -> Frame:
    turn = message["turn"]
    return Frame(
        uuid.UUID(message["thread"]),
        message["html"],
        uuid.UUID(turn) if turn else None,
        message["revision"],
        message["is_foot"],
    )


def _redis() -> Any:
    import redis.asyncio

    # A blocking read may take as long as nobody says anything: redis-py would close the line after 5 s.
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

"""Publish and subscribe for frames, in this process and, through `peers.py`, in the other web processes.

A subscriber whose queue is full is closed instead of losing frames; its page reconnects and syncs.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from chat import metrics
from chat.realtime.messages import (
    Frame,
    ListChange,
    ListChanges,
    decode_frame,
    decode_list_change,
    encode_frame,
    encode_thread_list_change,
)
from chat.realtime.peers import NO_WEB_PROCESS, Peers, send_to_web_processes

K = TypeVar("K")
_MAX_QUEUED = 64


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
    """The subscribers of this process, and the other web processes with theirs."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.peers = Peers(on_message=self._on_message, on_loss=self._close_subscribers)
        self._by_thread: dict[uuid.UUID | None, set[Subscriber]] = defaultdict(set)
        self._by_person: dict[uuid.UUID, set[Subscriber]] = defaultdict(set)
        self._on_stop: Callable[[uuid.UUID], None] = lambda turn_id: None

    async def open(self, on_stop: Callable[[uuid.UUID], None]) -> None:
        """Connect to the other processes; `on_stop` is called with the id of a turn to be stopped."""
        self.loop, self._on_stop = asyncio.get_running_loop(), on_stop
        await self.peers.open()

    async def close(self) -> None:
        """Disconnect from the other processes and close all subscribers."""
        await self.peers.close()
        self._close_subscribers()
        self.loop = None

    def subscribe(self, person_id: uuid.UUID, thread_id: uuid.UUID | None) -> Subscriber:
        """Add a page, of a thread or without one."""
        subscriber = Subscriber(person_id, thread_id)
        self._by_thread[thread_id].add(subscriber)
        self._by_person[person_id].add(subscriber)
        metrics.PAGES.inc()
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a page."""
        _discard(self._by_thread, subscriber.thread_id, subscriber)
        _discard(self._by_person, subscriber.person_id, subscriber)
        metrics.PAGES.dec()

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
        if self.peers.has_any:
            self.peers.send(encode_thread_list_change(self.peers.name, people, change))

    def is_needed(self, thread_id: uuid.UUID) -> bool:
        """Return whether frames of this thread have to be rendered: a page is open here, or could be elsewhere."""
        return self.loop is None or self.peers.has_any or thread_id in self._by_thread

    def publish(self, frame: Frame) -> None:
        """Publish a frame to all pages of its thread; call it in the loop's thread."""
        self.publish_local(frame)
        if self.peers.has_any:
            self.peers.send(encode_frame(self.peers.name, frame))

    def publish_local(self, frame: Frame) -> None:
        """Publish a frame to the pages of its thread in this process; call it in the loop's thread."""
        for subscriber in list(self._by_thread.get(frame.thread_id, ())):
            subscriber.put(frame)

    def broadcast_stop(self, turn_id: uuid.UUID) -> None:
        """Stop this turn in all processes; call it in the loop's thread."""
        self._on_stop(turn_id)
        if self.peers.has_any:
            self.peers.send(json.dumps({"from": self.peers.name, "stop": str(turn_id)}))

    def _close_subscribers(self) -> None:
        """Make all pages reconnect, which may have missed a frame."""
        for subscribers in list(self._by_thread.values()):
            for subscriber in list(subscribers):
                subscriber.close()

    def _on_message(self, message: dict[str, Any]) -> None:
        if "people" in message:
            self.notify_users([uuid.UUID(person_id) for person_id in message["people"]], decode_list_change(message))
        elif "stop" in message:
            self._on_stop(uuid.UUID(message["stop"]))
        else:
            self.publish_local(decode_frame(message))


def _discard(subscribers: dict[K, set[Subscriber]], key: K, subscriber: Subscriber) -> None:
    subscribers[key].discard(subscriber)
    if not subscribers[key]:
        del subscribers[key]


def publish(frame: Frame) -> None:
    """Publish a frame to all pages of its thread, from any thread of any process."""
    if hub.loop is None:
        publish_to_redis(frame)
    else:
        hub.loop.call_soon_threadsafe(hub.publish, frame)


def publish_to_redis(frame: Frame) -> None:
    """Publish a frame to all web processes, from a process without pages (a worker, a command)."""
    send_to_web_processes(encode_frame(NO_WEB_PROCESS, frame))


def notify_users(people: Iterable[uuid.UUID], change: ListChange | None = None) -> None:
    """Notify these people's pages that a link in their thread list changed, or all of it, from any thread of any process."""
    ids = list(people)
    if hub.loop is None:
        send_to_web_processes(encode_thread_list_change(NO_WEB_PROCESS, ids, change))
    else:
        hub.loop.call_soon_threadsafe(hub.notify_users_everywhere, ids, change)


hub = Hub()

"""The socket of a page: it lets a reader in, gives what the page lacks of its thread, then hands on frames and news."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections import deque
from contextlib import suppress

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError

from chat import access
from chat.executors import run_in_db_thread
from chat.realtime import frames, sync, watchdog
from chat.realtime.hub import Frame, Subscriber, ThreadListChanged, hub
from chat.realtime.sync import SyncRequest
from chat.threads.read_markers import mark_read
from memory.api import NotFoundError

log = logging.getLogger(__name__)

# Pages come back after 1013 (try again later), and stay away after the others. 4429: this person has too many sockets;
# 1008 (policy violation): frames that are too many or cannot be read.
SIGNED_OUT, NOT_YOURS, TOO_MANY, COME_BACK, POLICY_VIOLATION = 4401, 4404, 4429, 1013, 1008
# A page sends a frame when it connects, when its reader looks at it, and when it comes back.
_MAX_FRAMES, _FRAMES_WINDOW = 300, 60.0  # in so many seconds
_MAX_INVALID_FRAMES = 5
# The list of threads is drawn anew at most this often, in seconds.
_LIST_EVERY = 1.0


class PageConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Accepts, then closes with a reason where there is none to stay: a refused handshake would be retried for ever."""

    seat: Subscriber | None = None
    relay: asyncio.Task[None] | None = None
    listed_at = 0.0

    async def connect(self) -> None:
        self.frame_times: deque[float] = deque(maxlen=_MAX_FRAMES)
        self.invalid_frames = 0
        self.listings: set[asyncio.Task[None]] = set()
        await self.accept()
        self.revisions: dict[uuid.UUID, int] = {}
        self.feet: dict[uuid.UUID, int] = {}
        user, sign_in = self.scope["user"], self.scope["session"].session_key
        if not user.is_authenticated or not sign_in:
            await self.close(SIGNED_OUT)
            return
        self.who = access.SocketIdentity(
            user.id, sign_in, user.epoch, self.scope["url_route"]["kwargs"].get("thread_id")
        )
        if not await run_in_db_thread(access.authorize_sockets, [self.who]):
            await self.close(NOT_YOURS)
            return
        if hub.count_subscribers_of(user.id) >= settings.CATO.chat.sockets_per_person:
            await self.close(TOO_MANY)
            return
        self.seat = hub.subscribe(self.who.person_id, self.who.thread_id)
        watchdog.watch(self.who, self.seat)
        if self.who.thread_id is None:
            self._begin_to_relay(self.seat)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """What a page says (`snapshots.Told`). Asked again at each such frame: may they?"""
        if self.seat is None:
            return
        if self._is_flooding():
            await self._drop(POLICY_VIOLATION)
            return
        if not await run_in_db_thread(access.authorize_sockets, [self.who]):
            await self.close(NOT_YOURS)
            return
        try:
            told = sync.parse_sync_request(text_data or "")
        except ValueError:
            self.invalid_frames += 1
            if self.invalid_frames >= _MAX_INVALID_FRAMES:
                await self._drop(POLICY_VIOLATION)
                return
            await self.send(json.dumps({"error": "This socket takes one JSON object with the key have, seen or back."}))
            return
        try:
            await self._heed(told, self.seat)
        except NotFoundError:
            await self.close(NOT_YOURS)

    async def disconnect(self, code: int) -> None:
        self._leave()

    def _is_flooding(self) -> bool:
        """Return whether this frame is one too many in the last minute."""
        now = time.monotonic()
        is_flooding = len(self.frame_times) == _MAX_FRAMES and now - self.frame_times[0] < _FRAMES_WINDOW
        self.frame_times.append(now)
        return is_flooding

    async def _drop(self, code: int) -> None:
        """Close the socket, and look at nothing that still comes through it."""
        self._leave()
        await self.close(code)

    def _leave(self) -> None:
        for task in (self.relay, *self.listings):
            if task is not None:
                task.cancel()
        if self.seat is not None:
            watchdog.unwatch(self.seat)
            hub.unsubscribe(self.seat)
            self.seat = None

    async def _heed(self, told: SyncRequest, seat: Subscriber) -> None:
        who, thread_id = self.who.person_id, self.who.thread_id
        if told.is_back:
            seat.tell()
        if thread_id is None:
            return
        if told.is_seen:
            await run_in_db_thread(lambda: mark_read(access.get_thread(who, thread_id), who))
        if told.have is not None:
            html, self.revisions = await run_in_db_thread(sync.missing_updates, who, thread_id, told.have)
            self.feet = dict(self.revisions)
            if html:
                await self.send(html)
            self._begin_to_relay(seat)

    def _begin_to_relay(self, seat: Subscriber) -> None:
        if self.relay is None:
            self.relay = asyncio.create_task(self._relay(seat))

    def _begin_to_list(self, seat: Subscriber) -> None:
        listing = asyncio.create_task(self._send_list(seat))
        self.listings.add(listing)
        listing.add_done_callback(self.listings.discard)

    async def _relay(self, seat: Subscriber) -> None:
        while (heard := await seat.queue.get()) is not None:
            if isinstance(heard, ThreadListChanged):
                self._begin_to_list(seat)
                continue
            if self._is_news(heard):
                await self._send_html(heard.html)
        with suppress(OSError):
            await self.close(COME_BACK)

    async def _send_html(self, html: str) -> None:
        """Send from a task of ours; a page that was just closed is no error (ASGI servers raise an OSError then)."""
        with suppress(OSError):
            await self.send(html)

    def _is_news(self, frame: Frame) -> bool:
        """Whether the page does not have it yet."""
        if frame.turn_id is None or frame.revision is None:
            return True
        known = self.feet if frame.is_foot else self.revisions
        if frame.revision <= known.get(frame.turn_id, -1):
            return False
        known[frame.turn_id] = frame.revision
        return True

    async def _send_list(self, seat: Subscriber) -> None:
        """Draw the list anew, some time after the last time; what changes from then on is news again."""
        await asyncio.sleep(max(0.0, self.listed_at + _LIST_EVERY - time.monotonic()))
        self.listed_at = time.monotonic()
        seat.has_news = False
        try:
            html = await run_in_db_thread(frames.thread_list, self.who.person_id, self.who.thread_id)
        except DatabaseError as error:
            log.warning("a list of threads could not be drawn (%s); its page comes back", type(error).__name__)
            seat.end()
        else:
            await self._send_html(html)


class UnknownPathConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Closes a socket at an address that is none."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(NOT_YOURS)

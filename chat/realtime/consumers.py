"""The socket of a page: authorizes it, sends the differences to the page, then forwards frames and thread lists."""

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
from django.utils import timezone

from chat import access
from chat.executors import run_in_db_thread
from chat.realtime import frames, presence, sync, watchdog
from chat.realtime.hub import Subscriber, ThreadListChanged, hub
from chat.realtime.messages import Frame
from chat.realtime.sync import SyncRequest
from chat.threads.reader_marks import mark_read
from memory.api import NotFoundError

log = logging.getLogger(__name__)

# Pages reconnect after 1013 (try again later), also if they sent too many frames, are loaded again after 4401, 4404 (threads
# only) and 4409, and do neither after the others. 4429: the person has too many sockets; 1008 (policy violation): invalid
# frames, which no page sends.
SIGNED_OUT, NO_ACCESS, TOO_FAR_BEHIND, TOO_MANY, TRY_AGAIN_LATER, POLICY_VIOLATION = 4401, 4404, 4409, 4429, 1013, 1008
# A page sends a frame when it connects, when it is being read, and when it becomes visible again.
_MAX_FRAMES, _FRAMES_WINDOW = 300, 60.0  # seconds
_MAX_INVALID_FRAMES = 5
_AUTHORIZED_FOR = 1.0  # seconds; the watchdog checks open sockets every three seconds
_LIST_INTERVAL = 1.0  # seconds, at least, between two thread lists


class PageConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """The socket of a page. It accepts first and then closes with a code: pages retry a rejected handshake forever."""

    subscriber: Subscriber | None = None
    forwarder: asyncio.Task[None] | None = None
    listed_at = 0.0
    authorized_at = float("-inf")

    async def connect(self) -> None:
        """Authorize the socket and subscribe it."""
        self.frame_times: deque[float] = deque(maxlen=_MAX_FRAMES)
        self.invalid_frames = 0
        self.listings: set[asyncio.Task[None]] = set()
        self.listed_on = timezone.localdate()
        await self.accept()
        self.revisions: dict[uuid.UUID, int] = {}
        self.footer_revisions: dict[uuid.UUID, int] = {}
        user, session_key = self.scope["user"], self.scope["session"].session_key
        if not user.is_authenticated or not session_key:
            await self.close(SIGNED_OUT)
            return
        self.identity = access.SocketIdentity(
            user.id, session_key, user.epoch, self.scope["url_route"]["kwargs"].get("thread_id")
        )
        if not await self._is_authorized():
            await self.close(NO_ACCESS)
            return
        if hub.count_subscribers_of(user.id) >= settings.CATO.chat.sockets_per_person:
            await self.close(TOO_MANY)
            return
        self.subscriber = hub.subscribe(self.identity.person_id, self.identity.thread_id)
        watchdog.watch(self.identity, self.subscriber)
        if self.identity.thread_id is None:
            self._start_forwarding(self.subscriber)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a sync request, after another access check."""
        if self.subscriber is None:
            return
        if self._is_flooding():
            await self._drop(TRY_AGAIN_LATER)
            return
        if not await self._is_authorized():
            await self.close(NO_ACCESS)
            return
        try:
            request = sync.parse_sync_request(text_data or "")
        except ValueError:
            self.invalid_frames += 1
            if self.invalid_frames >= _MAX_INVALID_FRAMES:
                await self._drop(POLICY_VIOLATION)
                return
            await self.send(
                json.dumps({"error": "This socket takes one JSON object with the key have, seen, back or typing."})
            )
            return
        try:
            await self._handle_sync(request, self.subscriber)
        except NotFoundError:
            await self.close(NO_ACCESS)

    async def _is_authorized(self) -> bool:
        """Return whether the socket may stay open; a page's first frame follows its connection within milliseconds."""
        now = time.monotonic()
        if now - self.authorized_at < _AUTHORIZED_FOR:
            return True
        if not await run_in_db_thread(access.is_socket_authorized, self.identity):
            return False
        self.authorized_at = now
        return True

    async def disconnect(self, code: int) -> None:
        """Unsubscribe the socket."""
        self._leave()

    def _is_flooding(self) -> bool:
        """Count a frame, and return whether it exceeds the limit per minute."""
        now = time.monotonic()
        is_flooding = len(self.frame_times) == _MAX_FRAMES and now - self.frame_times[0] < _FRAMES_WINDOW
        self.frame_times.append(now)
        return is_flooding

    async def _drop(self, code: int) -> None:
        """Close the socket and ignore further frames."""
        self._leave()
        await self.close(code)

    def _leave(self) -> None:
        for task in (self.forwarder, *self.listings):
            if task is not None:
                task.cancel()
        if self.subscriber is not None:
            watchdog.unwatch(self.subscriber)
            hub.unsubscribe(self.subscriber)
            self.subscriber = None

    async def _handle_sync(self, request: SyncRequest, subscriber: Subscriber) -> None:
        person_id, thread_id = self.identity.person_id, self.identity.thread_id
        if request.refresh_list:
            subscriber.notify_thread_list()
        if thread_id is None:
            return
        if request.is_typing and (name := await run_in_db_thread(presence.name_if_shown, person_id)):
            hub.publish(frames.typing(thread_id, person_id, name))
        if request.mark_read:
            await run_in_db_thread(lambda: mark_read(access.get_marked_thread(person_id, thread_id), person_id))
        if request.revisions is not None:
            try:
                html, self.revisions = await run_in_db_thread(
                    sync.missing_updates, person_id, thread_id, request.revisions
                )
            except sync.TooFarBehindError:
                await self._drop(TOO_FAR_BEHIND)
                return
            self.footer_revisions = dict(self.revisions)
            if html:
                await self.send(html)
            self._start_forwarding(subscriber)

    def _start_forwarding(self, subscriber: Subscriber) -> None:
        if self.forwarder is None:
            self.forwarder = asyncio.create_task(self._forward(subscriber))

    def _schedule_thread_list(self, subscriber: Subscriber) -> None:
        listing = asyncio.create_task(self._send_thread_list(subscriber))
        self.listings.add(listing)
        listing.add_done_callback(self.listings.discard)

    async def _forward(self, subscriber: Subscriber) -> None:
        while (item := await subscriber.queue.get()) is not None:
            if isinstance(item, ThreadListChanged):
                self._schedule_thread_list(subscriber)
                continue
            if self._is_newer(item):
                await self._send_html(item.html)
        with suppress(OSError):
            await self.close(TRY_AGAIN_LATER)

    async def _send_html(self, html: str) -> None:
        """Send from a background task; ASGI servers raise an OSError if the page was just closed."""
        with suppress(OSError):
            await self.send(html)

    def _is_newer(self, frame: Frame) -> bool:
        if frame.turn_id is None or frame.revision is None:
            return True
        known = self.footer_revisions if frame.is_footer else self.revisions
        if frame.revision <= known.get(frame.turn_id, -1):
            return False
        known[frame.turn_id] = frame.revision
        return True

    async def _send_thread_list(self, subscriber: Subscriber) -> None:
        """Send what changed in the thread list, at most once a second; changes from then on notify again."""
        await asyncio.sleep(max(0.0, self.listed_at + _LIST_INTERVAL - time.monotonic()))
        self.listed_at = time.monotonic()
        changes, today = subscriber.take_list_changes(), timezone.localdate()
        # The names of the groups depend on the day.
        changes.is_whole |= today != self.listed_on
        self.listed_on = today
        person_id, open_id = self.identity.person_id, self.identity.thread_id
        try:
            html = await run_in_db_thread(frames.thread_list_update, person_id, open_id, changes)
        except DatabaseError as error:
            log.warning("a thread list could not be rendered (%s); the page reconnects", type(error).__name__)
            subscriber.close()
        else:
            await self._send_html(html)


class UnknownPathConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Closes sockets at unknown paths."""

    async def connect(self) -> None:
        """Accept and close the socket."""
        await self.accept()
        await self.close(NO_ACCESS)

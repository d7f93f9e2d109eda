"""The socket of a thread: it lets a reader in, gives a snapshot of what the page lacks, then hands on the frames."""

from __future__ import annotations

import asyncio
import json
import uuid

from channels.generic.websocket import AsyncWebsocketConsumer

from chat import access, seats, snapshots
from chat.broadcast import Seat, broadcast
from chat.errors import NotFound
from chat.hops import to_database

# Pages come back after 1013 (try again later), and stay away after the others.
SIGNED_OUT, NOT_YOURS, COME_BACK = 4401, 4404, 1013


class ThreadConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Accepts, then closes with a reason where there is none to stay: a refused handshake would be retried for ever."""

    seat: Seat | None = None
    relay: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        self.revisions: dict[uuid.UUID, int] = {}
        user, sign_in = self.scope["user"], self.scope["session"].session_key
        if not user.is_authenticated or not sign_in:
            await self.close(SIGNED_OUT)
            return
        self.who = access.Seat(user.id, sign_in, user.epoch, self.scope["url_route"]["kwargs"]["thread_id"])
        if not await to_database(access.still_allowed, [self.who]):
            await self.close(NOT_YOURS)
            return
        self.seat = broadcast.take_seat(self.who.thread_id)
        seats.watch(self.who, self.seat)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """The only thing a page says: which turns it has, at which revision. Asked again at each such frame: may they?"""
        if self.seat is None:
            return
        if not await to_database(access.still_allowed, [self.who]):
            await self.close(NOT_YOURS)
            return
        try:
            have = snapshots.understood(text_data or "")
        except ValueError:
            await self.send(json.dumps({"error": "This socket takes one JSON object with the key have."}))
            return
        try:
            html, self.revisions = await to_database(
                snapshots.what_is_missing, self.who.person_id, self.who.thread_id, have
            )
        except NotFound:
            await self.close(NOT_YOURS)
            return
        if html:
            await self.send(html)
        if self.relay is None:
            self.relay = asyncio.create_task(self._relay(self.seat))

    async def disconnect(self, code: int) -> None:
        if self.relay is not None:
            self.relay.cancel()
        if self.seat is not None:
            seats.unwatch(self.seat)
            broadcast.leave_seat(self.seat)

    async def _relay(self, seat: Seat) -> None:
        while (frame := await seat.queue.get()) is not None:
            if frame.turn_id is not None and frame.revision is not None:
                if frame.revision <= self.revisions.get(frame.turn_id, -1):
                    continue
                self.revisions[frame.turn_id] = frame.revision
            await self.send(frame.html)
        await self.close(COME_BACK)

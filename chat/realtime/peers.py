"""Messages between the web processes through Redis, and to them from processes without pages."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from django.conf import settings

log = logging.getLogger(__name__)

# The sender of messages from processes without pages.
NO_WEB_PROCESS = "outside"
_CHANNEL = "cato:frames"
_REGISTER_KEY = "cato:webs"
_REGISTRATION_TTL = 30.0  # seconds
_MAX_UNSENT = 10_000


class Peers:
    """The connection of this web process to the others.

    `name` is that of this process, and `has_any` whether there are others. `on_message` receives what they send. `on_loss` is
    called when something that they sent may not have arrived.
    """

    def __init__(self, on_message: Callable[[dict[str, Any]], None], on_loss: Callable[[], None]) -> None:
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.has_any = False
        self._on_message, self._on_loss = on_message, on_loss
        self._unsent: deque[str] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Connect and register this process, if Redis is configured."""
        if settings.REDIS_URL:
            ready = asyncio.Event()
            self._tasks = [asyncio.create_task(self._read(ready)), asyncio.create_task(self._write())]
            await asyncio.wait_for(ready.wait(), 10)

    async def close(self) -> None:
        """Disconnect, and remove this process from the registered ones."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if settings.REDIS_URL:
            await self._unregister()

    def send(self, message: str) -> None:
        """Send a message to all of them, in order; call it in the loop's thread, and only if there are any."""
        if len(self._unsent) < _MAX_UNSENT:
            self._unsent.append(message)
            self._wake.set()
        else:
            self._signal_loss()

    def receive(self, data: str | bytes) -> None:
        """Handle a message; one that cannot be read counts as lost."""
        try:
            message = json.loads(data)
            if message["from"] == self.name:
                return
            if "hello" in message:
                self.has_any = True
            elif "lost" in message:
                self._on_loss()
            else:
                self._on_message(message)
        except (ValueError, TypeError, KeyError, AttributeError):
            # The other web processes can run another version of Cato.
            log.exception("a message of another web process could not be read; all pages reconnect")
            self._on_loss()

    def _signal_loss(self) -> None:
        """Replace all unsent messages by one that says that they are lost."""
        self._unsent.clear()
        self._unsent.append(json.dumps({"from": self.name, "lost": True}))
        self._wake.set()

    async def _read(self, ready: asyncio.Event) -> None:
        """Receive messages until cancelled; what was sent while the connection was lost did not arrive."""
        from redis.exceptions import RedisError

        while True:
            try:
                await self._listen(ready)
            except (RedisError, OSError) as error:
                log.warning("Redis subscription lost (%s); all pages reconnect", type(error).__name__)
                self.has_any = True
                self._on_loss()
                ready.set()
                await asyncio.sleep(0.5)

    async def _listen(self, ready: asyncio.Event) -> None:
        client = _redis()
        try:
            async with client.pubsub() as subscription:
                await subscription.subscribe(_CHANNEL)
                await self._register(client)
                await client.publish(_CHANNEL, json.dumps({"from": self.name, "hello": True}))
                ready.set()
                renewed = time.monotonic()
                while True:
                    message = await subscription.get_message(ignore_subscribe_messages=True, timeout=5.0)
                    if message is not None:
                        self.receive(message["data"])
                    if time.monotonic() - renewed > 5:
                        await self._register(client)
                        renewed = time.monotonic()
        finally:
            await client.aclose()

    async def _register(self, client: Any) -> None:
        now = time.time()
        async with client.pipeline() as pipe:
            pipe.zremrangebyscore(_REGISTER_KEY, 0, now - _REGISTRATION_TTL)
            pipe.zadd(_REGISTER_KEY, {self.name: now})
            pipe.zcard(_REGISTER_KEY)
            *_, processes = await pipe.execute()
        self.has_any = processes > 1

    async def _unregister(self) -> None:
        from redis.exceptions import RedisError

        client = _redis()
        try:
            await client.zrem(_REGISTER_KEY, self.name)
        except (RedisError, OSError) as error:
            log.info("this web process stays registered for a while (%s)", type(error).__name__)
        finally:
            await client.aclose()

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
                    self._signal_loss()


def send_to_web_processes(message: str) -> None:
    """Send a message from a process without pages; if Redis does not answer, pages show the change once reloaded."""
    if not settings.REDIS_URL:
        return
    import redis

    try:
        _sync_redis().publish(_CHANNEL, message)
    except redis.RedisError as error:
        log.warning("a change was not published (%s); pages show it once they are reloaded", type(error).__name__)


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

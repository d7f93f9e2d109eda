"""A bounded pool for recalls with a queue that is fair between people and gives up what would come too late."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from chat.executors import RECALL_THREADS, run_in_recall_thread

R = TypeVar("R")
# The weight of the last recall in the expected duration of the next one.
_SMOOTHING = 0.2


class RecallSkippedError(Exception):
    """A recall was not finished in time, or not begun because it would not have been."""


class RecallPool:
    """Runs at most `size` recalls at once, each person's next one in turn."""

    def __init__(self, size: int) -> None:
        self._free = size
        # Those whose turn is next come first; a person moves to the end with each recall that begins.
        self._waiting: dict[uuid.UUID, deque[asyncio.Future[None]]] = {}
        self._expected = 0.0  # seconds

    async def run(self, person_id: uuid.UUID, deadline: float, call: Callable[[], R]) -> R:
        """Run `call` in a thread for this person and return its result.

        `deadline` is a time of `time.monotonic()`. Raises RecallSkippedError once the result would be later; a call that
        has begun keeps its place until it ends.
        """
        await self._wait_for_place(person_id, deadline)
        running = asyncio.ensure_future(run_in_recall_thread(call))
        began_at = time.monotonic()
        running.add_done_callback(lambda done: self._end(done, time.monotonic() - began_at))
        try:
            return await asyncio.wait_for(asyncio.shield(running), deadline - began_at)
        except TimeoutError:
            raise RecallSkippedError from None

    async def _wait_for_place(self, person_id: uuid.UUID, deadline: float) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(person_id, deque())
        queue.append(place)
        try:
            async with asyncio.timeout(deadline - self._expected - time.monotonic()):
                await place
        except (TimeoutError, asyncio.CancelledError) as error:
            if place in queue:
                queue.remove(place)
            if place.done() and not place.cancelled():
                self._release()  # it was given in the same moment
            if isinstance(error, TimeoutError):
                raise RecallSkippedError from None
            raise

    def _end(self, done: asyncio.Future[Any], duration: float) -> None:
        if not done.cancelled():
            done.exception()  # read here, because nobody awaits a call that took too long
        self._expected += _SMOOTHING * (duration - self._expected)
        self._release()

    def _release(self) -> None:
        self._free += 1
        while self._free and (place := self._next_place()):
            self._free -= 1
            place.set_result(None)

    def _next_place(self) -> asyncio.Future[None] | None:
        while self._waiting:
            person_id, queue = next(iter(self._waiting.items()))
            del self._waiting[person_id]
            while queue:
                place = queue.popleft()
                if queue:
                    self._waiting[person_id] = queue
                if not place.done():
                    return place
        return None


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, RecallPool] = WeakKeyDictionary()


def recall_pool() -> RecallPool:
    """Return the pool of the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), RecallPool(RECALL_THREADS))

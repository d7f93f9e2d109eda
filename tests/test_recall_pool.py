"""The pool of recalls: bounded, fair between people, and without recalls that would come too late."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from chat.answers.recall_pool import RecallPool, RecallSkippedError

ADA, BOB = uuid.uuid4(), uuid.uuid4()


class Recalls:
    """Recalls that record when they begin, and wait for a gate."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.running = self.most = 0
        self.gate = threading.Event()
        self._lock = threading.Lock()

    def recall(self, name: str) -> Callable[[], str]:
        def call() -> str:
            with self._lock:
                self.began.append(name)
                self.running += 1
                self.most = max(self.most, self.running)
            assert self.gate.wait(20)
            with self._lock:
                self.running -= 1
            return name

        return call


def soon() -> float:
    return time.monotonic() + 20


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (a thread changes it)
            await asyncio.sleep(0.005)


def start(*calls: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(call) for call in calls]


def test_no_more_recalls_run_at_once_than_there_are_places():
    async def scenario() -> None:
        pool, recalls = RecallPool(2), Recalls()
        tasks = start(*(pool.run(uuid.uuid4(), soon(), recalls.recall(str(n))) for n in range(6)))
        await until(lambda: recalls.running == 2)
        recalls.gate.set()
        assert await asyncio.gather(*tasks) == list("012345")
        assert recalls.most == 2

    asyncio.run(scenario())


def test_a_person_with_many_messages_lets_others_through():
    async def scenario() -> None:
        pool, recalls = RecallPool(1), Recalls()
        tasks = start(*(pool.run(ADA, soon(), recalls.recall(f"ada {n}")) for n in range(4)))
        await asyncio.sleep(0)
        tasks += start(pool.run(BOB, soon(), recalls.recall("bob")))
        await asyncio.sleep(0)
        recalls.gate.set()
        await asyncio.gather(*tasks)
        assert recalls.began == ["ada 0", "ada 1", "bob", "ada 2", "ada 3"]

    asyncio.run(scenario())


def test_a_recall_whose_time_passes_in_the_queue_is_skipped_without_being_begun():
    async def scenario() -> None:
        pool, recalls = RecallPool(1), Recalls()
        (first,) = start(pool.run(ADA, soon(), recalls.recall("first")))
        await asyncio.sleep(0)
        with pytest.raises(RecallSkippedError):
            await pool.run(BOB, time.monotonic() + 0.05, recalls.recall("late"))
        recalls.gate.set()
        assert await first == "first"
        assert await pool.run(BOB, soon(), recalls.recall("next")) == "next"
        assert recalls.began == ["first", "next"]

    asyncio.run(scenario())


def test_a_recall_that_takes_too_long_keeps_its_place_until_it_ends():
    async def scenario() -> None:
        pool, recalls = RecallPool(1), Recalls()
        with pytest.raises(RecallSkippedError):
            await pool.run(ADA, time.monotonic() + 0.05, recalls.recall("slow"))
        (waiting,) = start(pool.run(BOB, soon(), recalls.recall("next")))
        await asyncio.sleep(0.05)
        assert recalls.began == ["slow"]
        recalls.gate.set()
        assert await waiting == "next"

    asyncio.run(scenario())


def test_a_place_given_in_the_moment_of_a_cancellation_is_free_again():
    async def scenario() -> None:
        pool, recalls = RecallPool(0), Recalls()
        recalls.gate.set()
        (waiting,) = start(pool.run(ADA, soon(), recalls.recall("cancelled")))
        await until(lambda: bool(pool._waiting))
        pool._release()  # as at the end of a recall
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await pool.run(BOB, soon(), recalls.recall("next")) == "next"
        assert recalls.began == ["next"]

    asyncio.run(scenario())


def test_an_error_of_a_recall_reaches_its_caller_and_frees_the_place():
    def fail() -> None:
        raise LookupError("no such collection")

    async def scenario() -> None:
        pool, recalls = RecallPool(1), Recalls()
        recalls.gate.set()
        with pytest.raises(LookupError):
            await pool.run(ADA, soon(), fail)
        assert await pool.run(ADA, soon(), recalls.recall("next")) == "next"

    asyncio.run(scenario())

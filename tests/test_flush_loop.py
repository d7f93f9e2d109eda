"""The pulse of running answers: what pages are told at once, and what waits until the row holds it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError

from chat.answers import runner
from chat.answers.persistence import AnswerCheckpoint, AnswerJob, PreparedAnswer
from chat.answers.stream import AnswerStream
from chat.llm.events import StreamChunk
from chat.rendering.citations import Citations


class Ledger:
    """Stands for the database and the pages: keeps what was kept and shown, in its order; saves wait at its gate."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.gate = asyncio.Event()
        self.failing = 0
        self.saving = 0
        self.overlapping = False

    async def save(self, call: Any, rows: list[AnswerCheckpoint]) -> tuple[set[uuid.UUID], set[uuid.UUID]]:
        self.saving += 1
        self.overlapping |= self.saving > 1
        await self.gate.wait()
        self.saving -= 1
        if self.failing:
            self.failing -= 1
            raise DatabaseError
        self.events += [("kept", row.answer) for row in rows]
        return set(), set()

    def show(self, frame: Any) -> None:
        self.events.append(("shown", frame.html))

    def shown(self, text: str) -> bool:
        return any(what == "shown" and text in said for what, said in self.events)

    async def until_shown(self, text: str) -> None:
        async with asyncio.timeout(20):
            while not self.shown(text):  # noqa: ASYNC110  (the pulse tells nobody but pages)
                await asyncio.sleep(0)


def running(text: str) -> AnswerStream:
    """An answer under way that has said this."""
    job = AnswerJob(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), 1, "", "", 0, None, "", is_remembered=True)
    stream = runner._streams[job.turn_id] = AnswerStream(job)
    stream.start(PreparedAnswer([], 1, Citations(job.turn_id, 0)))
    stream.feed(StreamChunk(text))
    return stream


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Ledger], Awaitable[None]]], Ledger]]:
    """Run something while the pulse beats, as often as it can, on a ledger of its own."""

    def run(story: Callable[[Ledger], Awaitable[None]]) -> Ledger:
        async def whole() -> Ledger:
            ledger = Ledger()
            monkeypatch.setattr(runner, "run_in_db_thread", ledger.save)
            monkeypatch.setattr(runner.hub, "loop", asyncio.get_running_loop())
            monkeypatch.setattr(runner.hub, "publish", ledger.show)
            runner._ensure_flush_loop()
            await story(ledger)
            assert not ledger.overlapping, "of two saves at once the older could overwrite the newer"
            return ledger

        return asyncio.run(whole())

    monkeypatch.setattr(runner, "_FLUSH_INTERVAL", 0)
    monkeypatch.setattr("chat.answers.stream._SAVE_INTERVAL", 0)
    yield run
    runner._streams.clear()


def test_an_open_block_grows_on_pages_while_its_save_waits_for_another_writer(during):
    async def story(ledger: Ledger) -> None:
        stream = running("One")
        await ledger.until_shown("One")
        stream.feed(StreamChunk(" two"))
        await ledger.until_shown("One two")
        stream.feed(StreamChunk(" three"))
        await ledger.until_shown("One two three")

    assert [what for what, _ in during(story).events] == ["shown"] * 3


def test_a_finished_block_is_shown_once_the_row_holds_it_and_not_before(during):
    async def story(ledger: Ledger) -> None:
        stream, other = running("First block"), running("Meanwhile")
        await ledger.until_shown("First block")
        stream.feed(StreamChunk(".\n\nSecond block\n"))
        for word in ("a", "b", "c"):  # pulses go by
            other.feed(StreamChunk(f" {word}"))
            await ledger.until_shown(f" {word}")
        assert not ledger.shown("Second block")
        ledger.gate.set()
        await ledger.until_shown("Second block")

    events = during(story).events
    shown = next(at for at, (what, said) in enumerate(events) if what == "shown" and "Second block" in said)
    assert ("kept", "First block.\n\nSecond block\n") in events[:shown]
    assert sum("First block.</p>" in said for what, said in events if what == "shown") == 1


def test_what_is_finished_while_a_save_runs_waits_for_the_next_one(during):
    async def story(ledger: Ledger) -> None:
        stream = running("One.\n\nTwo\n")
        other = running("Meanwhile")
        await ledger.until_shown("Meanwhile")
        stream.feed(StreamChunk("\n\nThree\n"))
        other.feed(StreamChunk(" a"))
        await ledger.until_shown(" a")
        ledger.gate.set()
        await ledger.until_shown("Three")

    events = during(story).events
    before_three = events[: next(at for at, (_, said) in enumerate(events) if "<p>Three" in said)]
    assert ("kept", "One.\n\nTwo\n") in before_three
    assert ("kept", "One.\n\nTwo\n\n\nThree\n") in before_three


def test_after_a_save_that_failed_nothing_finished_is_shown_until_one_succeeds(during):
    async def story(ledger: Ledger) -> None:
        ledger.failing = 3
        ledger.gate.set()
        running("One.\n\nTwo\n")
        await ledger.until_shown("Two")
        assert ledger.failing == 0

    assert during(story).events[0] == ("kept", "One.\n\nTwo\n")


def test_what_comes_while_an_answer_is_drawn_is_drawn_next(monkeypatch):
    """Drawing runs in a thread of its own, and the model goes on meanwhile."""
    stream, drawn = running("One "), []

    def feed(text: str) -> list[str]:
        drawn.append(text)
        if len(drawn) < 3:
            stream.feed(StreamChunk(f"and {len(drawn)} more "))
        return []

    monkeypatch.setattr(stream._renderer, "feed", feed)
    while stream.has_unrendered_text:
        stream.render_new()
    del runner._streams[stream.job.turn_id]
    assert "".join(drawn) == "One and 1 more and 2 more "

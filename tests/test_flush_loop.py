"""The flush loop of running answers: open text is published at once, finished blocks after they are saved."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError

from chat.answers import flush, memory_searches
from chat.answers.job import AnswerJob
from chat.answers.persistence import AnswerCheckpoint
from chat.answers.preparation import PreparedAnswer
from chat.answers.stream import AnswerStream
from chat.llm.events import StreamChunk
from chat.models import Thread, Turn
from chat.realtime.hub import hub
from chat.realtime.messages import Frame
from chat.rendering.citations import Citations

STREAMS: dict[uuid.UUID, AnswerStream] = {}


class FakeStore:
    """Records saves and frames in order, in place of database and pages; saves wait for its gate."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.gate = asyncio.Event()
        self.failing = 0
        self.saving = 0
        self.overlapping = False
        self.has_page = True

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

    def publish(self, frame: Any) -> None:
        self.events.append(("shown", frame.html))

    def is_published(self, text: str) -> bool:
        return any(event == "shown" and text in content for event, content in self.events)

    async def until_saved(self, text: str) -> None:
        async with asyncio.timeout(20):
            while ("kept", text) not in self.events:  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def until_published(self, text: str) -> None:
        async with asyncio.timeout(20):
            while not self.is_published(text):  # noqa: ASYNC110  (the loop notifies only pages)
                await asyncio.sleep(0)


def running_stream(text: str) -> AnswerStream:
    """Return a running answer stream with this text."""
    job = AnswerJob(Turn(thread=Thread(), attempt=1))
    stream = STREAMS[job.turn_id] = AnswerStream(job)
    stream.start(PreparedAnswer([], 1, Citations(job.turn_id)))
    stream.feed(StreamChunk(text))
    return stream


@pytest.fixture
def run_flush_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Callable[[FakeStore], Awaitable[None]]], FakeStore]]:
    """Run a coroutine while the flush loop ticks as fast as possible."""

    def run(scenario: Callable[[FakeStore], Awaitable[None]]) -> FakeStore:
        async def record() -> FakeStore:
            store = FakeStore()
            monkeypatch.setattr(flush, "run_in_db_thread", store.save)
            monkeypatch.setattr(hub, "loop", asyncio.get_running_loop())
            monkeypatch.setattr(hub, "publish", store.publish)
            monkeypatch.setattr(hub, "is_needed", lambda thread_id: store.has_page)
            flush.ensure_flushing(STREAMS)
            await scenario(store)
            assert not store.overlapping, "of two saves at once the older could overwrite the newer"
            return store

        return asyncio.run(record())

    monkeypatch.setattr(flush, "_MIN_INTERVAL", 0)
    monkeypatch.setattr("chat.answers.progress._SAVE_INTERVAL", 0)
    yield run
    STREAMS.clear()


def test_an_open_block_grows_on_pages_while_its_save_waits(run_flush_loop):
    async def scenario(store: FakeStore) -> None:
        stream = running_stream("One")
        await store.until_published("One")
        stream.feed(StreamChunk(" two"))
        await store.until_published("One two")
        stream.feed(StreamChunk(" three"))
        await store.until_published("One two three")

    assert [event for event, _ in run_flush_loop(scenario).events] == ["shown"] * 3


def test_a_finished_block_is_published_only_after_it_is_saved(run_flush_loop):
    async def scenario(store: FakeStore) -> None:
        stream, other = running_stream("First block"), running_stream("Meanwhile")
        await store.until_published("First block")
        stream.feed(StreamChunk(".\n\nSecond block\n"))
        for word in ("a", "b", "c"):  # ticks pass
            other.feed(StreamChunk(f" {word}"))
            await store.until_published(f" {word}")
        assert not store.is_published("Second block")
        store.gate.set()
        await store.until_published("Second block")

    events = run_flush_loop(scenario).events
    published_at = next(
        at for at, (event, content) in enumerate(events) if event == "shown" and "Second block" in content
    )
    assert ("kept", "First block.\n\nSecond block\n") in events[:published_at]
    assert sum("First block.</p>" in content for event, content in events if event == "shown") == 1


def test_an_answer_that_ends_during_a_save_publishes_its_blocks_first(run_flush_loop, monkeypatch):
    """With the last frame, a page that read the saved row would get them twice."""
    monkeypatch.setattr("chat.answers.progress._SAVE_INTERVAL", 60)  # only finished blocks are saved

    async def scenario(store: FakeStore) -> None:
        stream = running_stream("First block")
        await store.until_published("First block")
        stream.feed(StreamChunk(".\n\nSecond block\n"))
        async with asyncio.timeout(20):
            while not stream.progress.is_awaiting_save:  # noqa: ASYNC110
                await asyncio.sleep(0)
        stream.is_finished = True
        ending = asyncio.create_task(flush.finish_saving(stream))
        await asyncio.sleep(0)
        assert not ending.done()
        store.gate.set()
        async with asyncio.timeout(20):
            await ending
        assert store.is_published("First block.</p>")
        assert "First block" not in "".join(stream.progress.drain(stream.text, stream.reasoning)[0])

    run_flush_loop(scenario)


def test_blocks_finished_during_a_save_wait_for_the_next_one(run_flush_loop):
    async def scenario(store: FakeStore) -> None:
        stream = running_stream("One.\n\nTwo\n")
        other = running_stream("Meanwhile")
        await store.until_published("Meanwhile")
        stream.feed(StreamChunk("\n\nThree\n"))
        other.feed(StreamChunk(" a"))
        await store.until_published(" a")
        store.gate.set()
        await store.until_published("Three")

    events = run_flush_loop(scenario).events
    before_three = events[: next(at for at, (_, content) in enumerate(events) if "<p>Three" in content)]
    assert ("kept", "One.\n\nTwo\n") in before_three
    assert ("kept", "One.\n\nTwo\n\n\nThree\n") in before_three


def test_after_a_failed_save_finished_blocks_wait_for_a_successful_one(run_flush_loop):
    async def scenario(store: FakeStore) -> None:
        store.failing = 3
        store.gate.set()
        running_stream("One.\n\nTwo\n")
        await store.until_published("Two")
        assert store.failing == 0

    assert run_flush_loop(scenario).events[0] == ("kept", "One.\n\nTwo\n")


def test_an_answer_without_an_open_page_is_only_saved_and_continues_on_a_page_that_opens(run_flush_loop):
    async def scenario(store: FakeStore) -> None:
        store.has_page = False
        store.gate.set()
        stream = running_stream("One.\n\nTwo\n")
        await store.until_saved("One.\n\nTwo\n")
        store.has_page = True  # it has read the row
        stream.feed(StreamChunk("and more\n\nThree\n"))
        await store.until_published("Three")

    shown = "".join(content for event, content in run_flush_loop(scenario).events if event == "shown")
    assert "One." not in shown, "it stands in the row"
    assert shown.count("and more</p>") == 1


def test_an_answer_without_an_open_page_is_rendered_only_to_be_saved(run_flush_loop, monkeypatch):
    monkeypatch.setattr("chat.answers.progress._SAVE_INTERVAL", 0.05)
    revisions = []

    async def scenario(store: FakeStore) -> None:
        store.has_page = False
        store.gate.set()
        stream = running_stream("One")
        for number in range(50):
            stream.feed(StreamChunk(f" {number}"))
            await asyncio.sleep(0.005)
        revisions.append(stream.progress.revision)

    saves = run_flush_loop(scenario).events
    assert revisions[0] - 1 <= len(saves) + 1, "the last one may not be saved yet"


def test_text_that_arrives_during_rendering_is_rendered_next(monkeypatch):
    """Rendering runs in a thread while the model continues."""
    stream, drawn = running_stream("One "), []

    def feed(text: str) -> list[str]:
        drawn.append(text)
        if len(drawn) < 3:
            stream.feed(StreamChunk(f"and {len(drawn)} more "))
        return []

    monkeypatch.setattr(stream.progress._renderer, "feed", feed)
    while stream.has_unrendered_text:
        stream.progress.render(stream.text)
    STREAMS.clear()
    assert "".join(drawn) == "One and 1 more and 2 more "


def test_searches_are_published_with_a_later_revision_than_a_checkpoint_before_them(monkeypatch):
    """A page that read the row of the checkpoint ignores frames of its revision."""
    stream = running_stream("Let me see.")
    searches = memory_searches.MemorySearches(stream, PreparedAnswer([], 1, Citations(stream.job.turn_id)))
    saved, published = [], []

    async def save_checkpoint_first(*call: Any) -> list[Any]:
        saved.append(stream.checkpoint().revision)
        return []

    async def publish(frame: Frame) -> None:
        published.append(frame.revision)

    monkeypatch.setattr(memory_searches, "run_in_db_thread", save_checkpoint_first)
    monkeypatch.setattr(memory_searches, "publish_frame", publish)
    monkeypatch.setattr(hub, "is_needed", lambda thread_id: True)
    monkeypatch.setattr(searches, "_frame", lambda has_new: Frame(uuid.uuid4(), "", revision=stream.progress.revision))
    asyncio.run(searches.note_limit())
    STREAMS.clear()

    assert published[0] > saved[0]

"""Publishes and saves running answers: one loop for all answers of this process.

Finished blocks and reasoning are saved before their frame is published; an open block is sent whole each time and needs
no save.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections.abc import Mapping, Sequence

from django.db import DatabaseError

from chat.answers import persistence
from chat.answers.persistence import AnswerCheckpoint
from chat.answers.stream import AnswerStream
from chat.executors import run_in_db_thread, run_in_render_thread
from chat.realtime.hub import hub, publish_to_redis
from chat.realtime.messages import Frame

log = logging.getLogger(__name__)

# Seconds between flushes. With many answers a flush takes long, and rendering is at most a third of the time.
_MIN_INTERVAL, _MAX_INTERVAL = 0.06, 0.2
_RENDERING_SHARE = 1 / 3

_flush_task: asyncio.Task[None] | None = None
_save_task: asyncio.Task[None] | None = None


def ensure_flushing(streams: Mapping[uuid.UUID, AnswerStream]) -> None:
    """Flush `streams` until there are none, unless that is being done."""
    global _flush_task
    if _flush_task is None or _flush_task.done():
        _flush_task = asyncio.get_running_loop().create_task(_flush_loop(streams), context=contextvars.Context())


async def finish_saving(stream: AnswerStream) -> None:
    """Wait until what is being saved of an answer is published, too.

    A page that reads the row meanwhile has these parts. It recognises them by the revision of their save, so they must not
    be sent with a later one.
    """
    if stream.progress.is_awaiting_save and _save_task is not None:
        await asyncio.wait({_save_task})


async def publish_frame(frame: Frame) -> None:
    """Publish a frame, directly or through Redis if this process has no pages."""
    if hub.loop is None:
        await asyncio.to_thread(publish_to_redis, frame)
    else:
        hub.publish(frame)


async def _flush_loop(streams: Mapping[uuid.UUID, AnswerStream]) -> None:
    elapsed = 0.0
    while streams:
        await asyncio.sleep(_pause_after(elapsed))
        started_at = time.monotonic()
        await _flush(list(streams.values()), started_at)
        elapsed = time.monotonic() - started_at


def _pause_after(elapsed: float) -> float:
    """Return the seconds to wait after a flush of this duration."""
    interval = min(max(elapsed / _RENDERING_SHARE, _MIN_INTERVAL), _MAX_INTERVAL)
    # Beyond the longest interval other tasks still get half of the time.
    return max(interval - elapsed, min(elapsed, _MAX_INTERVAL))


async def _flush(streams: Sequence[AnswerStream], now: float) -> None:
    """Publish the new text of these answers, and begin to save those that are due."""
    global _save_task
    # Before the start and after the end, other code writes the row.
    running = [stream for stream in streams if stream.prepared and not stream.is_finished]
    await _publish_progress([stream for stream in running if _is_render_due(stream, now)])
    # A save can wait for another writer of the database; open blocks are published meanwhile.
    if _save_task is None or _save_task.done():
        due = [stream for stream in running if not stream.is_finished and stream.progress.is_save_due(now)]
        for stream in due:
            stream.progress.take_reasoning(stream.reasoning)
            stream.progress.is_awaiting_save = stream.progress.needs_save_before_publish
        if due:
            _save_task = asyncio.create_task(_save(due, [stream.checkpoint() for stream in due]))


def _is_render_due(stream: AnswerStream, now: float) -> bool:
    """Return whether this answer has new text, and a page that shows it or a save that needs it."""
    progress = stream.progress
    if not stream.has_unrendered_text or progress.is_awaiting_save or progress.render_lock.locked():
        return False
    return hub.is_needed(stream.job.thread_id) or progress.is_save_due(now)


async def _publish_progress(streams: Sequence[AnswerStream]) -> None:
    """Render the new text of these answers in one thread, and publish what need not be saved first."""
    for stream in streams:
        await stream.progress.render_lock.acquire()  # without waiting: nobody holds it
    try:
        frames = await run_in_render_thread(_render_frames, streams) if streams else []
        for frame in frames:
            await publish_frame(frame)
    finally:
        for stream in streams:
            stream.progress.render_lock.release()


def _render_frames(streams: Sequence[AnswerStream]) -> list[Frame]:
    frames = []
    for stream in streams:
        stream.progress.render(stream.text)
        if not stream.progress.needs_save_before_publish and hub.is_needed(stream.job.thread_id):
            frames.append(_progress_frame(stream))
    return frames


def _progress_frame(stream: AnswerStream) -> Frame:
    return stream.progress.frame(stream.job.thread_id, stream.job.turn_id)


async def _save(due: list[AnswerStream], rows: list[AnswerCheckpoint]) -> None:
    """Save these answers, then publish the parts that pages may only get once they are saved.

    Until then no more text of them is rendered: it would be published without being saved.
    """
    try:
        await _save_and_publish(due, rows)
    except DatabaseError as error:
        # Parts that are not saved are not published; the next flush tries again.
        log.warning("running answers could not be saved: %s", type(error).__name__)
    finally:
        for stream in due:
            stream.progress.is_awaiting_save = False


async def _save_and_publish(due: list[AnswerStream], rows: list[AnswerCheckpoint]) -> None:
    started_at = time.monotonic()
    stops, lost_leases = await run_in_db_thread(persistence.save_checkpoints, rows)
    for stream in due:
        stream.progress.saved_at = started_at
        if stream.job.turn_id in stops:
            stream.stopped.set()
        if stream.job.turn_id in lost_leases:
            stream.has_lost_lease = True
            stream.stopped.set()
        elif stream.progress.is_awaiting_save:
            await _publish_saved(stream)


async def _publish_saved(stream: AnswerStream) -> None:
    """Publish the parts that are saved now. A page that opens later reads them from the row."""
    async with stream.progress.render_lock:
        if hub.is_needed(stream.job.thread_id):
            await publish_frame(await run_in_render_thread(_progress_frame, stream))
        else:
            stream.progress.discard_frame()

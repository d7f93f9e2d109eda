"""Generates answers in tasks that outlive the request and the socket that started them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat import metrics
from chat.answers import persistence
from chat.answers.final_frames import finished_frames
from chat.answers.flush import ensure_flushing, finish_saving, publish_frame
from chat.answers.job import ACCESS_LOST, ACCESS_LOST_TEXT, AnswerJob, build_job, find_fallback, load_job
from chat.answers.persistence import AnswerOutcome
from chat.answers.preparation import PreparedAnswer
from chat.answers.recall_step import recall_and_prepare
from chat.answers.rounds import receive_answer
from chat.answers.stream import AnswerStream
from chat.answers.title_request import write_title
from chat.errors import ModelError
from chat.executors import run_in_db_thread, run_in_render_thread
from chat.llm import client, failures
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import StreamChunk
from chat.models import Turn
from chat.realtime import frames, watchdog
from chat.realtime.hub import hub, publish
from chat.realtime.messages import Frame
from chat.turns import queue, stopping
from chat.turns.posting import PostedTurn
from chat.turns.queue import Successors

log = logging.getLogger(__name__)

_SHUTDOWN_GRACE = 10.0  # seconds
PLACEHOLDER = gettext_noop("Placeholder: no model is connected. An administrator can connect one in Settings.")


_streams: dict[uuid.UUID, AnswerStream] = {}
_tasks: set[asyncio.Task[Any]] = set()
_access_task: asyncio.Task[None] | None = None


def start_answer(turn_id: uuid.UUID, posted: PostedTurn | None = None) -> None:
    """Start to answer a turn, from any thread; in a process without the hub's loop the sweep interrupts the turn.

    `posted` is the turn if it was posted by this request, which has checked the author's access.
    """
    if hub.loop is not None:
        hub.loop.call_soon_threadsafe(_spawn, run_answer(turn_id, posted, asked_at=time.monotonic()))


def publish_and_start(
    posted: PostedTurn,
    *,
    removed_ids: Sequence[uuid.UUID] = (),
    added_ids: Sequence[uuid.UUID] = (),
    is_returned: bool = False,
) -> Frame | None:
    """Publish a posted turn to the pages of its thread, and start its answer unless it is queued.

    `removed_ids` and `added_ids` are the turns that left and joined the active branch. Return the published frame; None
    if the turn was posted before, or no page needs the frame and it is not `is_returned`.
    """
    turn, frame = posted.turn, None
    if removed_ids or added_ids:
        frame = frames.branch_switched(turn.thread_id, removed_ids, added_ids)
    elif posted.is_new and (is_returned or hub.is_needed(turn.thread_id)):
        frame = _frame_of(posted)
    if frame is not None:
        publish(frame)
    if posted.is_new and turn.state == Turn.State.RECALLING:
        start_answer(turn.id, posted if turn.attempt == 1 else None)
    return frame


def _frame_of(posted: PostedTurn) -> Frame:
    if posted.turn.attempt > 1:
        return frames.turn(posted.turn.id)
    if posted.is_only_version:
        return frames.posted_turn(posted.turn, posted.attachments)
    return frames.new_turn(posted.turn.id)


def stop(turn: Turn, *, by: uuid.UUID) -> bool:
    """Stop an answer in whichever process generates it, from any thread; return False if it is not running.

    `by` is a reader of its thread.
    """
    if not stopping.request_stop(turn, by=by):
        return False
    if hub.loop is not None:
        hub.loop.call_soon_threadsafe(hub.broadcast_stop, turn.id)
    return True


def get_running(turn_id: uuid.UUID) -> AnswerStream | None:
    """Return the answer stream of this turn, if this process generates it."""
    return _streams.get(turn_id)


def stop_local(turn_id: uuid.UUID) -> None:
    """Stop the answer, if this process generates it."""
    if turn_id in _streams:
        _streams[turn_id].stopped.set()


async def shutdown() -> None:
    """Wait up to 10 s for running answers, interrupt the rest, and close the connections to the endpoint."""
    if _tasks:
        await asyncio.wait(_tasks, timeout=_SHUTDOWN_GRACE)
    for task in list(_tasks):
        task.cancel()
    await asyncio.gather(*_tasks, return_exceptions=True)
    await client.close_connections()


def _spawn(coroutine: Coroutine[Any, Any, None]) -> None:
    # A new context: one inherited from a request would keep that request's thread and connection.
    task = asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def run_answer(turn_id: uuid.UUID, posted: PostedTurn | None = None, *, asked_at: float | None = None) -> None:
    """Answer one turn, from recall to the stored exchange, then start the queued turns that waited for it.

    `asked_at` is the time, of `time.monotonic()`, from which the time for recall counts.
    """
    asked_at = asked_at or time.monotonic()
    job = await _get_job(turn_id, posted)
    if job is None or turn_id in _streams:
        return
    stream = _streams[turn_id] = AnswerStream(job)
    metrics.STREAMS.inc()
    ensure_flushing(_streams)
    _watch_access()
    try:
        outcome = await _generate(stream, asked_at)
        completed = await _finish(stream, outcome)
        if completed is not None:
            _spawn(write_title(stream.job, completed))
    except asyncio.CancelledError:
        await asyncio.shield(_finish(stream, stream.build_outcome(Turn.State.INTERRUPTED)))
        raise
    except Exception:
        # Any error: the row keeps the saved text, the sweep interrupts the turn, and it can be resumed.
        log.exception("an answer could not be completed")
    finally:
        _streams.pop(turn_id, None)
        metrics.STREAMS.dec()
    await _start_queued(job.turn, stream.successors)


async def _get_job(turn_id: uuid.UUID, posted: PostedTurn | None) -> AnswerJob | None:
    """Return what is to be answered; None if the turn does not wait for an answer, or was ended without access."""
    if posted is not None:
        return await run_in_db_thread(
            build_job, posted.turn, posted.attachments, is_only_version=posted.is_only_version
        )
    job = await run_in_db_thread(load_job, turn_id)
    if isinstance(job, AnswerJob):
        return job
    if job is not None:
        await publish_frame(await run_in_db_thread(frames.turn, turn_id))
        await _start_queued(job)
    return None


async def _start_queued(ended: Turn, successors: Successors | None = None) -> None:
    """Start the turns that waited for this answer; a process without pages leaves this to the web processes."""
    if hub.loop is None:
        return
    if successors is None:
        started = await run_in_db_thread(queue.start_queued_after_answer, ended.thread_id, ended.author_id)
    elif successors.queued_thread_ids:
        started = await run_in_db_thread(queue.start_queued_in, successors.queued_thread_ids)
    else:
        started = []
    for turn_id in started:
        await publish_frame(await run_in_db_thread(frames.turn, turn_id))
        _spawn(run_answer(turn_id))


async def _generate(stream: AnswerStream, asked_at: float) -> AnswerOutcome:
    """Recall, then stream the model's answer until it ends, fails or is stopped."""
    try:
        prepared = await recall_and_prepare(stream, asked_at)
    except ModelError as error:
        # The endpoint may not receive the thread: nothing was recalled for it, and nothing is sent.
        return stream.build_outcome(Turn.State.FAILED, error.code, str(error))
    if prepared is None:
        stream.has_lost_lease = True
        return stream.build_outcome(Turn.State.INTERRUPTED)
    stopping = asyncio.ensure_future(stream.stopped.wait())
    receiving = asyncio.ensure_future(_consume(stream, prepared))
    try:
        await asyncio.wait({stopping, receiving}, return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            if stream.has_lost_access:
                return stream.build_outcome(Turn.State.STOPPED, ACCESS_LOST, _(ACCESS_LOST_TEXT))
            return stream.build_outcome(Turn.State.STOPPED)
        receiving.result()
    except ModelError as error:
        text = failures.failure_text(error, has_text=bool(stream.text.strip()))
        return stream.build_outcome(Turn.State.FAILED, error.code, text, error.reason)
    finally:
        stopping.cancel()
        receiving.cancel()
        await asyncio.gather(stopping, receiving, return_exceptions=True)
    if not stream.text.strip() and not stream.called_tools:
        failure = failures.empty_answer(stream.finish_reason)
        return stream.build_outcome(Turn.State.FAILED, failure.code, str(failure))
    return stream.build_outcome(Turn.State.COMPLETE)


async def _consume(stream: AnswerStream, prepared: PreparedAnswer) -> None:
    if stream.job.endpoint is None:
        stream.feed(StreamChunk(_(PLACEHOLDER)))
        return
    try:
        await _receive_with_images(stream, stream.job.endpoint, prepared)
    except ModelError as error:
        if error.code not in failures.WITHOUT_ANSWER or stream.has_received:
            raise
        fallback = await run_in_db_thread(find_fallback, stream.job, prepared.space_ids)
        if fallback is None or fallback.endpoint is None:
            raise
        stream.fallback = {"by": fallback.endpoint.label, "instead_of": stream.job.endpoint.label}
        stream.use_job(fallback)
        await _receive_with_images(stream, fallback.endpoint, prepared)


async def _receive_with_images(stream: AnswerStream, endpoint: ModelEndpoint, prepared: PreparedAnswer) -> None:
    messages = prepared.messages
    try:
        await receive_answer(stream, endpoint, prepared, messages)
    except ModelError as error:
        # Endpoints do not report in advance whether a model accepts images.
        if error.code != "rejected" or stream.has_received or not client.has_images(messages):
            raise
        stream.images_dropped = True
        await receive_answer(stream, endpoint, prepared, client.without_images(messages))


async def _finish(stream: AnswerStream, outcome: AnswerOutcome) -> Turn | None:
    """Complete the turn, and publish the rest of its answer and its footer; return it, None if the lease is lost."""
    if stream.has_lost_lease:
        return None
    # From now on the flush loop begins nothing with it; the rest is published below.
    stream.is_finished = True
    await finish_saving(stream)
    progress = stream.progress
    async with progress.render_lock:
        progress.revision += 1
    if stream.logprobs:
        await run_in_db_thread(stream.logprobs.save, stream.job.turn_id)
    completed = await run_in_db_thread(
        persistence.complete_turn, stream.job, outcome, progress.revision, recalled_ids=stream.recalled_ids
    )
    if completed is None:
        return None
    metrics.ANSWERS.labels(outcome.state).inc()
    if hub.is_needed(stream.job.thread_id):
        blocks, reasoning = await run_in_render_thread(progress.drain, stream.text, stream.reasoning)
        for frame in await run_in_db_thread(finished_frames, stream, completed, blocks, reasoning):
            await publish_frame(frame)
    return completed.turn


def _watch_access() -> None:
    global _access_task
    if _access_task is None or _access_task.done():
        _access_task = asyncio.get_running_loop().create_task(
            watchdog.watch_answers(_streams), context=contextvars.Context()
        )

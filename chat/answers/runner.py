"""Answers as they are written: tasks of this process that outlive the request and the socket that began them.

One pulse for all of them tells the pages what they say and saves it. The row holds every finished block, and all that was
thought, before the frame with it leaves; a block that is still open is shown whole each time and waits for no save.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat import metrics
from chat.answers import failures
from chat.answers import persistence as answering
from chat.answers.persistence import ACCESS_LOST, ACCESS_LOST_TEXT, AnswerCheckpoint, AnswerJob, AnswerOutcome
from chat.answers.stream import AnswerStream
from chat.errors import ModelError
from chat.executors import run_in_db_thread, run_in_recall_thread, run_in_render_thread
from chat.llm import client
from chat.llm.client import Message
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import StreamChunk
from chat.models import Turn
from chat.realtime import frames, lost_access
from chat.realtime.hub import Frame, hub, publish, publish_to_redis
from chat.threads import titles
from chat.turns import posting
from chat.turns.posting import PostedTurn
from memory.api import SearchResults

log = logging.getLogger(__name__)

_PULSE = 0.06
_GRACE = 10.0
PLACEHOLDER = gettext_noop("Placeholder: no model is connected. An administrator can connect one in Settings.")


_replies: dict[uuid.UUID, AnswerStream] = {}
_tasks: set[asyncio.Task[Any]] = set()
_pulse_task: asyncio.Task[None] | None = None
_save_task: asyncio.Task[None] | None = None
_access_task: asyncio.Task[None] | None = None


def start_answer(turn_id: uuid.UUID) -> None:
    """Begin to answer a turn that waits for it, from any thread; without pages' loop the sweep will mark it."""
    if hub.loop is not None:
        hub.loop.call_soon_threadsafe(_spawn, run_answer(turn_id))


def publish_and_start(
    asked: PostedTurn, *, removed_ids: Sequence[uuid.UUID] = (), added_ids: Sequence[uuid.UUID] = ()
) -> None:
    """Show what was just said to who reads the thread, and have it answered unless it waits its turn.

    `gone` and `shown`: the turns of the branch that it took the place of, and of the one that stands now.
    """
    turn = asked.turn
    if removed_ids or added_ids:
        publish(frames.branch_switched(turn.thread_id, removed_ids, added_ids))
    elif asked.is_new:
        publish(frames.turn(turn.id) if turn.attempt > 1 else frames.new_turn(turn.id))
    if asked.is_new and turn.state == Turn.State.RECALLING:
        start_answer(turn.id)


def ask_to_stop(turn_id: uuid.UUID) -> None:
    """Stop an answer wherever it is written, from any thread."""
    if hub.loop is not None:
        hub.loop.call_soon_threadsafe(hub.ask_to_stop, turn_id)


def count() -> int:
    """How many answers this process is writing."""
    return len(_replies)


def get_running(turn_id: uuid.UUID) -> AnswerStream | None:
    """The answer to this turn, if this process writes it."""
    return _replies.get(turn_id)


def stop_local(turn_id: uuid.UUID) -> None:
    """Stop the answer if this process writes it."""
    if turn_id in _replies:
        _replies[turn_id].stopped.set()


async def shutdown() -> None:
    """On the way down: let running answers end by themselves for a while, then hand them over as interrupted."""
    if _tasks:
        await asyncio.wait(_tasks, timeout=_GRACE)
    for task in list(_tasks):
        task.cancel()
    await asyncio.gather(*_tasks, return_exceptions=True)


def _spawn(work: Coroutine[Any, Any, None]) -> None:
    # A context of its own: one inherited from a request would keep that request's thread and connection.
    task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def run_answer(turn_id: uuid.UUID) -> None:
    """Answer one turn from recalling to remembering, then let the next queued one begin."""
    brief = await run_in_db_thread(answering.load_job, turn_id)
    if brief is None or turn_id in _replies:
        return
    if await run_in_db_thread(answering.end_without_access, turn_id):
        await _publish(await run_in_db_thread(frames.turn, turn_id))
        await _start_waiting(brief)
        return
    reply = _replies[turn_id] = AnswerStream(brief)
    _ensure_flush_loop()
    _watch_access()
    try:
        ending = await _generate(reply)
        await _finish(reply, ending)
        if ending.state == Turn.State.COMPLETE:
            _spawn(_title(reply))
    except asyncio.CancelledError:
        await asyncio.shield(_finish(reply, reply.ending(Turn.State.INTERRUPTED)))
        raise
    except Exception:
        # Whatever it was, the row keeps what was saved; the sweep marks it as interrupted and it can be resumed.
        log.exception("an answer could not be completed")
    finally:
        _replies.pop(turn_id, None)
    await _start_waiting(brief)


async def _start_waiting(brief: AnswerJob) -> None:
    """Start the answers that waited for this one to end; a process that serves no pages leaves that to those that do."""
    if hub.loop is None:
        return
    for waiting_id in await run_in_db_thread(posting.start_after, brief.thread_id, brief.author_id):
        await _publish(await run_in_db_thread(frames.turn, waiting_id))
        _spawn(run_answer(waiting_id))


async def _generate(reply: AnswerStream) -> AnswerOutcome:
    """Recall, ask the model, and take in what it says until it ends, is stopped, or fails."""
    begun = await _begin(reply)
    if begun is None:
        reply.is_taken = True
        return reply.ending(Turn.State.INTERRUPTED)
    stopping = asyncio.ensure_future(reply.stopped.wait())
    listening = asyncio.ensure_future(_consume(reply, begun))
    try:
        await asyncio.wait({stopping, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not listening.done():
            if reply.has_lost_access:
                return reply.ending(Turn.State.STOPPED, ACCESS_LOST, _(ACCESS_LOST_TEXT))
            return reply.ending(Turn.State.STOPPED)
        listening.result()
    except ModelError as error:
        return reply.ending(Turn.State.FAILED, error.code, failures.sentence(error, has_text=bool(reply.text.strip())))
    finally:
        stopping.cancel()
        listening.cancel()
        await asyncio.gather(stopping, listening, return_exceptions=True)
    if not reply.text.strip():
        failure = failures.nothing(reply.finish_reason)
        return reply.ending(Turn.State.FAILED, failure.code, str(failure))
    return reply.ending(Turn.State.COMPLETE)


async def _begin(reply: AnswerStream) -> list[Message] | None:
    turn_id, began = reply.brief.turn_id, time.monotonic()
    try:
        recollection = await asyncio.wait_for(
            run_in_recall_thread(answering.recall_for_turn, turn_id), settings.CATO.vector_store.retrieval_timeout
        )
    except TimeoutError:
        recollection = SearchResults(note="slow")
    took = time.monotonic() - began
    metrics.observe_recall(took, found=bool(recollection.results), note=recollection.note)
    recall_ms = round(1000 * took)
    begun = await run_in_db_thread(answering.prepare_answer, turn_id, reply.brief.attempt, recollection, recall_ms)
    if begun is None:
        return None
    reply.begin(begun)
    reply.asked_at = time.monotonic()
    await _publish(await run_in_db_thread(frames.turn, turn_id))
    return begun.messages


async def _consume(reply: AnswerStream, messages: list[Message]) -> None:
    if reply.brief.answering is None:
        reply.hear(StreamChunk(_(PLACEHOLDER)))
        return
    try:
        await _stream_model(reply, reply.brief.answering, messages)
    except ModelError as error:
        # There is no asking beforehand whether a model takes pictures.
        if error.code != "rejected" or not client.has_images(messages):
            raise
        reply.is_blind = True
        await _stream_model(reply, reply.brief.answering, client.without_images(messages))


async def _stream_model(reply: AnswerStream, answering: ModelEndpoint, messages: list[Message]) -> None:
    # Closed at once where the answer is cut off, so that the endpoint does not go on.
    async with aclosing(client.stream(answering, messages, model=reply.brief.model)) as pieces:
        async for piece in pieces:
            if reply.asked_at is not None:
                metrics.FIRST_TOKEN_SECONDS.observe(time.monotonic() - reply.asked_at)
                reply.asked_at = None
            reply.hear(piece)
            if reply.is_full:
                break


async def _finish(reply: AnswerStream, ending: AnswerOutcome) -> None:
    if reply.is_taken:
        return
    async with reply.drawing:
        # From here on the pulse leaves it alone: what is left goes with the ending.
        reply.is_over = True
        reply.revision += 1
    if await run_in_db_thread(answering.complete_turn, reply.brief, ending, reply.revision):
        metrics.ANSWERS.labels(ending.state).inc()
        rest = await run_in_render_thread(reply.rest)
        for frame in await run_in_db_thread(frames.answer_finished, reply.brief.turn_id, *rest):
            await _publish(frame)


async def _title(reply: AnswerStream) -> None:
    """Have the model say what the thread is to be called; without it, its first line stays."""
    messages = await run_in_db_thread(titles.title_prompt, reply.brief.turn_id)
    if messages is None or reply.brief.answering is None:
        return
    try:
        said = await client.complete(reply.brief.answering, messages, model=reply.brief.model)
    except ModelError as error:
        log.info("a thread got no title from the model: %s", error.code)
        return
    await run_in_db_thread(titles.apply_model_title, reply.brief.thread_id, said)


def _ensure_flush_loop() -> None:
    global _pulse_task
    if _pulse_task is None or _pulse_task.done():
        _pulse_task = asyncio.get_running_loop().create_task(_flush_loop(), context=contextvars.Context())


def _watch_access() -> None:
    global _access_task
    if _access_task is None or _access_task.done():
        _access_task = asyncio.get_running_loop().create_task(
            lost_access.watch(_replies), context=contextvars.Context()
        )


async def _flush_loop() -> None:
    """Show and save all running answers, again and again, until there are none."""
    global _save_task
    took = 0.0
    while _replies:
        # With many answers a pulse takes its time; between two of them there is room for everything else.
        await asyncio.sleep(max(_PULSE, took))
        now = time.monotonic()
        # Before it begins and after it is over, the row is somebody else's to write.
        running = [reply for reply in _replies.values() if reply.has_begun and not reply.is_over]
        await asyncio.gather(*(_show(reply) for reply in running if reply.has_news and not reply.is_held))
        # A save may wait for another writer of the database; open blocks go on growing meanwhile.
        if _save_task is None or _save_task.done():
            due = [reply for reply in running if reply.must_be_saved(now)]
            for reply in due:
                reply.think()
                reply.is_held = reply.needs_save_before_publish
            if due:
                _save_task = asyncio.create_task(_save(due, [reply.saved() for reply in due]))
        took = time.monotonic() - now


async def _show(reply: AnswerStream) -> None:
    """Take in what came of this answer and show it, unless it must be saved first."""
    async with reply.drawing:
        if not reply.is_over:
            frame = await run_in_render_thread(reply.draw)
            if frame is not None:
                await _publish(frame)


async def _publish(frame: Frame) -> None:
    """Give a frame to every page of its thread; a command that writes an answer has no pages of its own."""
    if hub.loop is None:
        await asyncio.to_thread(publish_to_redis, frame)
    else:
        hub.publish(frame)


async def _save(due: list[AnswerStream], rows: list[AnswerCheckpoint]) -> None:
    """Save these answers, then show of them what had to be saved first.

    Nothing more is taken in of an answer until then: what its row does not hold would be shown with the rest.
    """
    try:
        await _save_and_show(due, rows)
    except DatabaseError as error:
        # What must be saved first is not shown; the next pulse tries again with more.
        log.warning("running answers could not be saved: %s", type(error).__name__)
    finally:
        for reply in due:
            reply.is_held = False


async def _save_and_show(due: list[AnswerStream], rows: list[AnswerCheckpoint]) -> None:
    began = time.monotonic()
    stops, removed_ids = await run_in_db_thread(answering.save_checkpoints, rows)
    for turn_id in stops:
        stop_local(turn_id)
    for reply in due:
        reply.saved_at = began
        if reply.is_over:
            continue
        if reply.brief.turn_id in removed_ids:
            reply.is_taken = True
            reply.stopped.set()
        elif reply.is_held:
            async with reply.drawing:
                if not reply.is_over:
                    await _publish(await run_in_render_thread(reply.frame))

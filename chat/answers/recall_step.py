"""The step before the model is asked: recall in time, search the web meanwhile, prepare the prompt, show what was found."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from django.conf import settings

from chat import metrics
from chat.answers import preparation, recall
from chat.answers.flush import publish_frame
from chat.answers.job import AnswerJob, with_endpoint
from chat.answers.preparation import PolicyChangedError, PreparedAnswer, prepared_turn
from chat.answers.recall import TurnRecall
from chat.answers.recall_pool import RecallSkippedError, recall_pool
from chat.answers.stream import AnswerStream
from chat.answers.web_search import search_for_turn
from chat.executors import run_in_db_thread, run_in_render_thread
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.hub import hub
from chat.realtime.messages import Frame
from memory.api import CatoError, SearchResults


async def recall_and_prepare(stream: AnswerStream, asked_at: float) -> PreparedAnswer | None:
    """Recall and build the prompt; None if the lease is lost. Raises ModelError if the endpoint may not receive the thread.

    If the policy of the endpoint is changed meanwhile, what it may receive is recalled again.
    """
    stream.job.ensure_permitted()
    (recalled, elapsed), web_search = await asyncio.gather(_recall(stream.job, asked_at), search_for_turn(stream))
    while True:
        recall_ms = round(1000 * elapsed)
        try:
            prepared = await run_in_db_thread(preparation.prepare_answer, stream.job, recalled, recall_ms, web_search)
            break
        except PolicyChangedError:
            stream.use_job(await run_in_db_thread(with_endpoint, stream.job))
            stream.job.ensure_permitted()
            recalled, elapsed = await _recall(stream.job, asked_at)
    if prepared is None:
        return None
    stream.start(prepared)
    stream.requested_at = time.monotonic()
    if hub.is_needed(stream.job.thread_id):
        await publish_frame(await run_in_render_thread(_started_frame, stream.job, prepared))
    return prepared


async def _recall(job: AnswerJob, asked_at: float) -> tuple[TurnRecall, float]:
    """Return what is recalled in time, and how many seconds it took; nothing new for an answer that is resumed.

    Its partial text cites what was recalled for it before, which `prepare_answer` quotes again.
    """
    turn = job.turn
    if turn.answer:
        results = SearchResults(note=turn.recall_note, is_correction=turn.is_correction)
        return TurnRecall(results, withheld=turn.withheld.get("sources", 0)), (turn.recall_ms or 0) / 1000
    deadline = asked_at + settings.CATO.vector_store.retrieval_timeout
    try:
        recalled = await recall_pool().run(job.turn.author_id, deadline, lambda: recall.recall_for_turn(job))
    except RecallSkippedError:
        recalled = TurnRecall(SearchResults(note=Turn.RECALL_SKIPPED))
    if job.permitted != job.audience and not recalled.search_results.note:
        recalled = replace(recalled, withheld=await _count_withheld(job, deadline))
    elapsed = time.monotonic() - asked_at
    search_results = recalled.search_results
    metrics.observe_recall(elapsed, found=bool(search_results.results), note=search_results.note)
    return recalled, elapsed


async def _count_withheld(job: AnswerJob, deadline: float) -> int | None:
    """Return how many sources the endpoint may not receive; None if there is no time to search for them."""
    try:
        return await recall_pool().run(job.turn.author_id, deadline, lambda: recall.count_withheld(job))
    except (RecallSkippedError, CatoError):
        return None


def _started_frame(job: AnswerJob, prepared: PreparedAnswer) -> Frame:
    return frames.answer_started(*prepared_turn(job, prepared))

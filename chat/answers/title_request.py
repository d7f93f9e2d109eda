"""The request to the model for a thread's title, after its first answer."""

from __future__ import annotations

import logging

from chat.answers.job import AnswerJob, ensure_sendable
from chat.errors import ModelError
from chat.executors import run_in_db_thread
from chat.llm import client
from chat.llm.usage_counts import UsageCounts, UsageMeter
from chat.models import Turn
from chat.threads import titles
from chat.usage.counting import Purpose, count_usage, title_usage
from chat.usage.limits import is_limit_reached
from memory.api import DataPolicy

log = logging.getLogger(__name__)


async def write_title(job: AnswerJob, completed: Turn) -> None:
    """Let the model write the thread's title; if it fails, the title stays the first message."""
    messages = titles.title_prompt(completed)
    if messages is None or job.endpoint is None:
        return
    if job.has_usage_limits and await run_in_db_thread(_is_title_over_limit, completed):
        return
    try:
        # Its prompt is what the endpoint was sent and answered already; a policy is in force for what it has, too.
        if job.endpoint.policy != DataPolicy():
            await run_in_db_thread(ensure_sendable, job, frozenset({completed.thread.space_id}))
    except ModelError:
        return
    meter = UsageMeter()
    reply = ""
    try:
        reply = await client.complete(job.endpoint, messages, model=job.model, meter=meter)
    except ModelError as error:
        log.info("the model wrote no title for a thread: %s", error.code)
    await run_in_db_thread(_apply_title, completed, reply, meter.total())


def _apply_title(turn: Turn, reply: str, used: UsageCounts | None) -> None:
    """Set the title from the reply, and count what the request used, which the thread stores if it gets the title."""
    if reply and titles.apply_model_title(turn.thread, reply, usage=title_usage(used, turn.api_token_id)):
        return
    count_usage(
        used,
        purpose=Purpose.TITLE,
        person_id=turn.author_id,
        space_id=turn.thread.space_id,
        api_token_id=turn.api_token_id,
    )


def _is_title_over_limit(turn: Turn) -> bool:
    return is_limit_reached(person_id=turn.author_id, space=turn.thread.space, api_token_id=turn.api_token_id)

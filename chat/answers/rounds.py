"""Receives the model's answer, in several requests if the model searches memory or uses tools in between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chat import metrics
from chat.answers.job import ensure_sendable
from chat.answers.memory_searches import MAX_ROUNDS, MemorySearches
from chat.answers.memory_tools import DEFINITIONS
from chat.answers.preparation import PreparedAnswer
from chat.answers.stream import AnswerStream
from chat.answers.tool_uses import ToolUses
from chat.errors import ModelError
from chat.executors import run_in_db_thread
from chat.llm import client, failures
from chat.llm.client import NO_OPTIONS, Message
from chat.llm.endpoint import ModelEndpoint
from chat.llm.tool_calls import ToolCall
from chat.tools.offered import OfferedTool, offered_tools

_MAX_TOOL_ROUNDS = 8  # of searches and tools of servers, which a task often needs one after the other
# Models that rejected a request with tools and accepted it without; they are tried again after a restart.
_without_tools: set[tuple[ModelEndpoint, str]] = set()


async def receive_answer(
    stream: AnswerStream, endpoint: ModelEndpoint, prepared: PreparedAnswer, messages: Sequence[Message]
) -> None:
    """Receive the answer to `messages`; its searches and calls of tools are carried out and shown. Raises ModelError."""
    offered = await _offered_tools(stream, endpoint)
    if offered is None:
        await _receive(stream, endpoint, messages)
        return
    tool_uses = ToolUses(stream, offered)
    definitions = [*(DEFINITIONS if settings.CATO.vector_store.enabled else ()), *tool_uses.definitions]
    try:
        calls = await _receive(stream, endpoint, messages, {"tools": definitions})
    except ModelError as error:
        # Endpoints do not report in advance whether a model accepts tools.
        if settings.CATO.llm.tools != "auto" or error.code != "rejected" or stream.has_received:
            raise
        await _receive(stream, endpoint, messages)
        # Without tools, the same messages can fit into the model's context.
        if not failures.is_too_long(error.reason):
            _without_tools.add((endpoint, stream.model))
        return
    searches = MemorySearches(stream, prepared)
    prompt = list(messages)
    max_rounds = _MAX_TOOL_ROUNDS if offered else MAX_ROUNDS
    for number in range(1, max_rounds + 1):
        if not calls or stream.stopped.is_set():
            return
        prompt.append(_assistant_message(stream, calls))
        prompt += await _run_calls(calls, searches, tool_uses, prompt)
        is_last = number == max_rounds
        # Servers need the tools to read the calls in the prompt, also where no more are allowed.
        options = {"tools": definitions} | ({"tool_choice": "none"} if is_last else {})
        calls = await _receive(stream, endpoint, prompt, options)
    if calls:
        if not all(map(tool_uses.has, calls)):
            await searches.note_limit()
        if not stream.text.strip():
            raise ModelError(_("The model used tools again and again and did not answer. Try again."), "looped")


async def _run_calls(
    calls: Sequence[ToolCall], searches: MemorySearches, tool_uses: ToolUses, prompt: Sequence[Message]
) -> list[Message]:
    """Carry out the calls of one round, and return their results in the order of the calls."""
    of_servers = [call for call in calls if tool_uses.has(call)]
    of_memory = [call for call in calls if not tool_uses.has(call)]
    results = await searches.run(of_memory, prompt) if of_memory else []
    results += await tool_uses.run(of_servers, [*prompt, *results]) if of_servers else []
    by_id = {id(call): result for call, result in zip([*of_memory, *of_servers], results, strict=True)}
    return [by_id[id(call)] for call in calls]


async def _offered_tools(stream: AnswerStream, endpoint: ModelEndpoint) -> list[OfferedTool] | None:
    """Return the tools of servers that the model is offered beside memory; None if it is offered nothing.

    A client that brings tools, or a format, gets nothing else.
    """
    job, conf = stream.job, settings.CATO
    if conf.llm.tools == "off" or not job.audience:
        return None
    if job.turn.tool_messages or {"tools", "response_format"} & job.turn.generation_options.keys():
        return None
    if conf.llm.tools == "auto" and (endpoint, stream.model) in _without_tools:
        return None
    has_servers = bool(job.turn.thread.tool_server_ids)
    offered = await run_in_db_thread(offered_tools, job.turn) if has_servers else []
    return offered if offered or conf.vector_store.enabled else None


def _assistant_message(stream: AnswerStream, calls: Sequence[ToolCall]) -> Message:
    return {
        "role": "assistant",
        "content": stream.round_text or None,
        "tool_calls": [call.as_json() for call in calls],
    }


async def _receive(
    stream: AnswerStream, endpoint: ModelEndpoint, messages: Sequence[Message], tools: Mapping[str, Any] = NO_OPTIONS
) -> list[ToolCall]:
    """Receive the response to one request and return the calls of Cato's tools in it. Raises ModelError."""
    if stream.requested_at is None and stream.prepared is not None:
        # The first request follows the check of its prompt at once, a later one searches or a person's permission.
        await run_in_db_thread(ensure_sendable, stream.job, stream.prepared.space_ids)
    stream.begin_round()
    options = {**stream.job.turn.generation_options, **tools}
    # `aclosing` closes the connection at once when the answer is cut off, so that the endpoint stops generating.
    request = client.stream(endpoint, messages, model=stream.job.model, options=options, meter=stream.meter)
    async with aclosing(request) as chunks:
        async for chunk in chunks:
            if stream.requested_at is not None:
                metrics.FIRST_TOKEN_SECONDS.observe(time.monotonic() - stream.requested_at)
                stream.requested_at = None
            stream.feed(chunk)
            if stream.is_full:
                return []
    return stream.tool_calls.calls if tools else []

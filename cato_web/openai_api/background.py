"""Requests that chat front ends make by themselves, for titles, tags or search queries.

The model answers them from their messages alone: without recall, without a thread, and nothing is remembered.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from django.utils.translation import gettext as _

from cato_web.openai_api.errors import openai_error_of, unsupported
from cato_web.openai_api.messages import check_roles
from cato_web.openai_api.requests import ChatRequest, check_supported, generation_options
from cato_web.openai_api.responses import DONE, choice, event, text_delta, usage_with_total
from chat.answers.runner import PLACEHOLDER
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import StreamChunk
from chat.llm.logprobs import Logprobs
from chat.llm.usage_counts import UsageMeter
from memory.api import CatoError

_CHECK_INTERVAL = 2.0  # seconds, as for answers in threads


def is_background(body: ChatRequest, headers: Mapping[str, str]) -> bool:
    """Return True if the request says so, or has the form of Open WebUI's tasks, which say so nowhere."""
    task = str((body.metadata or {}).get("task", ""))
    if headers.get("X-Cato-Background", "").lower() == "yes" or task.endswith("_generation"):
        return True
    content = body.messages[-1].content
    return isinstance(content, str) and content.lstrip().startswith("### Task:") and "<chat_history>" in content


def check_request(body: ChatRequest) -> None:
    """Raise OpenAIError if the request uses a feature that is not supported, such as tools, which need a thread."""
    check_supported(body)
    check_roles(body.messages, allow_tools=False)
    if body.tools:
        raise unsupported(_("A background request has no thread to wait for tools in: leave tools away."), "tools")


async def answer(
    endpoint: ModelEndpoint | None, body: ChatRequest, model: str, meter: UsageMeter
) -> AsyncGenerator[StreamChunk, None]:
    """Stream the model's answer; `meter` counts its usage. Raises ModelError."""
    if endpoint is None:
        yield StreamChunk(_(PLACEHOLDER), finish_reason="stop")
        return
    messages = [message.model_dump(include={"role", "content"}, exclude_none=True) for message in body.messages]
    request = client.stream(endpoint, messages, model=model, options=generation_options(body), meter=meter)
    async with aclosing(request) as chunks:
        async for chunk in chunks:
            yield chunk


async def check_regularly(
    chunks: AsyncGenerator[StreamChunk, None], check: Callable[[], Awaitable[None]]
) -> AsyncGenerator[StreamChunk, None]:
    """Yield the chunks until `check`, which is called every two seconds, raises an error."""
    checked_at = time.monotonic()
    async with aclosing(chunks):
        async for chunk in chunks:
            if time.monotonic() - checked_at >= _CHECK_INTERVAL:
                await check()
                checked_at = time.monotonic()
            yield chunk


async def wait_until_begun(chunks: AsyncGenerator[StreamChunk, None]) -> AsyncGenerator[StreamChunk, None]:
    """Return the same chunks once the first one has arrived. Raises ModelError if the endpoint rejects the request."""
    first = await anext(chunks, None)

    async def all_chunks() -> AsyncGenerator[StreamChunk, None]:
        async with aclosing(chunks):
            if first is not None:
                yield first
            async for chunk in chunks:
                yield chunk

    return all_chunks()


async def completion(chunks: AsyncGenerator[StreamChunk, None], *, model: str) -> dict[str, Any]:
    """Return the complete answer in OpenAI's format. Raises ModelError."""
    text, refusal, fingerprint, reason, usage = "", "", "", "stop", None
    logprobs = Logprobs()
    async with aclosing(chunks):
        async for chunk in chunks:
            if chunk.is_refusal:
                refusal += chunk.text
            else:
                text += chunk.text
            logprobs.add(chunk.logprobs)
            fingerprint = chunk.system_fingerprint or fingerprint
            reason, usage = chunk.finish_reason or reason, chunk.usage or usage
    message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal or None}
    return _head("chat.completion", model) | {
        "system_fingerprint": fingerprint or None,
        "choices": [{"index": 0, "message": message, "logprobs": logprobs.since(0), "finish_reason": reason}],
        "usage": usage_with_total(usage),
    }


async def completion_chunks(
    chunks: AsyncGenerator[StreamChunk, None], *, model: str, with_usage: bool
) -> AsyncIterator[bytes]:
    """Yield the answer as events; a failure is an event of its own."""
    head, usage = _head("chat.completion.chunk", model) | {"system_fingerprint": None}, None
    if with_usage:
        head["usage"] = None
    yield event(head | {"choices": [choice({"role": "assistant", "content": ""})]})
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                usage = chunk.usage or usage
                head["system_fingerprint"] = chunk.system_fingerprint or head["system_fingerprint"]
                delta = text_delta(chunk.text, chunk.is_refusal)
                if delta or chunk.finish_reason or chunk.logprobs:
                    part = choice(delta, finish_reason=chunk.finish_reason or None, logprobs=chunk.logprobs)
                    yield event(head | {"choices": [part]})
    except CatoError as error:
        yield event(openai_error_of(error).body)
        return
    if with_usage:
        yield event(head | {"choices": [], "usage": usage_with_total(usage)})
    yield DONE


def _head(kind: str, model: str) -> dict[str, Any]:
    created = int(time.time())
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": created, "model": model}

"""Answers in OpenAI's format, complete or as events."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from cato_web.openai_api.conversations import AnswerResult, load_result
from cato_web.openai_api.errors import OpenAIError, answer_failure, openai_error_of
from cato_web.openai_api.models import DEFAULT_MODEL
from chat import access
from chat.answers import runner
from chat.answers.tail import AnswerPart, tail_answer_parts
from chat.executors import run_in_db_thread
from chat.llm.logprobs import Logprobs
from chat.models import Turn
from memory.api import NotFoundError

_MAX_WAIT = 5.0  # seconds
DONE = b"data: [DONE]\n\n"


async def completion(turn: Turn, api_token_id: uuid.UUID) -> dict[str, Any]:
    """Return the completed answer of a turn. Raises OpenAIError if it failed, and NotFoundError."""
    logprobs = Logprobs()
    async for part in answer_parts(turn, api_token_id):
        logprobs.add(part.logprobs)
    result = await load_completed(turn, api_token_id)
    complete = {
        "index": 0,
        "message": _message(result.turn),
        "logprobs": logprobs.since(0),
        "finish_reason": _finish_reason(result.turn),
    }
    return _head(turn, "chat.completion") | {
        "model": result.turn.model or DEFAULT_MODEL,
        "system_fingerprint": result.turn.system_fingerprint or None,
        "choices": [complete],
        "usage": usage_with_total(result.turn.usage),
        "cato": cato_extension(result),
    }


async def completion_chunks(
    turn: Turn, api_token_id: uuid.UUID, *, model: str, with_usage: bool, is_stopped_when_closed: bool
) -> AsyncIterator[bytes]:
    """Yield the answer as events. The last one contains what was recalled; a failure is an event of its own.

    `is_stopped_when_closed`: a client that closes the stream stops the answer.
    """
    head = _head(turn, "chat.completion.chunk") | {"model": model, "system_fingerprint": None}
    if with_usage:
        head["usage"] = None
    names = {"thread": str(turn.thread_id), "turn": str(turn.id)}
    try:
        async with stopping(turn, is_stopped_when_closed=is_stopped_when_closed):
            yield event(head | {"choices": [choice({"role": "assistant", "content": ""})], "cato": names})
            async for part in answer_parts(turn, api_token_id):
                head["system_fingerprint"] = part.system_fingerprint or None
                yield event(
                    head | {"choices": [choice(text_delta(part.text, part.is_refusal), logprobs=part.logprobs)]}
                )
            result = await load_completed(turn, api_token_id)
    except OpenAIError as error:
        yield event(error.body)
        return
    except NotFoundError as error:
        yield event(openai_error_of(error).body)
        return
    head["model"] = result.turn.model or model
    head["system_fingerprint"] = result.turn.system_fingerprint or None
    for delta in _call_deltas(result.turn):
        yield event(head | {"choices": [choice(delta)]})
    yield event(
        head | {"choices": [choice({}, finish_reason=_finish_reason(result.turn))], "cato": cato_extension(result)}
    )
    if with_usage:
        yield event(head | {"choices": [], "usage": usage_with_total(result.turn.usage)})
    yield DONE


async def wait_until_begun(turn: Turn, api_token_id: uuid.UUID, *, is_stopped_when_closed: bool) -> None:
    """Wait until the answer has text or has ended, at most five seconds, before the status of a stream is sent.

    Raises OpenAIError if it failed without any text, so that clients get the status and the time of the next try as
    headers, and NotFoundError.
    """
    async with stopping(turn, is_stopped_when_closed=is_stopped_when_closed):
        try:
            async with asyncio.timeout(_MAX_WAIT), aclosing(answer_parts(turn, api_token_id)) as parts:
                async for _part in parts:
                    return
        except TimeoutError:
            return
        await load_completed(turn, api_token_id)


@asynccontextmanager
async def stopping(turn: Turn, *, is_stopped_when_closed: bool) -> AsyncIterator[None]:
    """Stop the answer if the client closes its stream, unless it can fetch the answer later."""
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):
        if is_stopped_when_closed:
            await run_in_db_thread(partial(runner.stop, turn, by=turn.author_id))
        raise


def answer_parts(turn: Turn, api_token_id: uuid.UUID) -> AsyncGenerator[AnswerPart, None]:
    """Yield the answer in parts until it ends. Raises NotFoundError once access is lost."""
    return tail_answer_parts(turn.id, _access_check(turn, api_token_id))


def _access_check(turn: Turn, api_token_id: uuid.UUID) -> Callable[[], bool]:
    return partial(access.can_receive, turn.author_id, turn.thread_id, api_token_id)


async def load_completed(turn: Turn, api_token_id: uuid.UUID) -> AnswerResult:
    """Load the answer of a turn that has ended. Raises OpenAIError if it failed, and NotFoundError."""
    if not await run_in_db_thread(_access_check(turn, api_token_id)):
        raise NotFoundError
    result = await run_in_db_thread(load_result, turn.author_id, turn)
    if result.turn.state in (Turn.State.FAILED, Turn.State.INTERRUPTED):
        raise answer_failure(result.turn)
    return result


def _finish_reason(turn: Turn) -> str:
    """Return the model's reason; a stopped answer ends like a complete one."""
    return turn.finish_reason or Turn.FinishReason.STOP.value


def _head(turn: Turn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id.hex}",
        "object": kind,
        "created": int(turn.created_at.timestamp()),
    }


def cato_extension(result: AnswerResult) -> dict[str, Any]:
    """Return the thread and turn of an answer, what was recalled for it, and whether it is a placeholder."""
    turn = result.turn
    names = {"thread": str(turn.thread_id), "turn": str(turn.id)}
    return names | {"recalled": result.recalled, "is_dummy": turn.is_dummy}


def _message(turn: Turn) -> dict[str, Any]:
    calls = _calls(turn)
    content, refusal = (None, turn.answer) if turn.is_refusal else (turn.answer, None)
    message = {"role": "assistant", "content": (content or None) if calls else content, "refusal": refusal}
    return message | ({"tool_calls": calls} if calls else {})


def _calls(turn: Turn) -> list[dict[str, Any]]:
    """Return the calls of the client's tools for whose results the turn waits."""
    return list(turn.tool_messages[-1]["tool_calls"]) if turn.waits_for_tools else []


def _call_deltas(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield the calls as OpenAI streams them: each one's ID and name, then its arguments."""
    for index, call in enumerate(_calls(turn)):
        function = call["function"]
        yield {"tool_calls": [{"index": index} | call | {"function": function | {"arguments": ""}}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]}


def usage_with_total(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the token counts of the model endpoint with their sum, or None if it sent none."""
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]} if usage else None


def text_delta(text: str, is_refusal: bool) -> dict[str, Any]:
    """Return the delta of new text, empty without text."""
    return {"refusal" if is_refusal else "content": text} if text else {}


def choice(
    delta: dict[str, Any], *, finish_reason: str | None = None, logprobs: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the choice of an event."""
    return {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}


def event(content: dict[str, Any]) -> bytes:
    """Format an event."""
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"

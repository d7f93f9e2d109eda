"""Answers in OpenAI's format, complete or as events."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from cato_web.openai_api.conversations import AnswerResult, load_result
from cato_web.openai_api.errors import OpenAIError, model_failure, openai_error_of
from cato_web.openai_api.models import DEFAULT_MODEL
from chat import access
from chat.answers.tail import tail_answer
from chat.executors import run_in_db_thread
from chat.models import Turn
from memory.api import NotFoundError

_DONE = b"data: [DONE]\n\n"


async def completion(turn: Turn, api_token_id: uuid.UUID) -> dict[str, Any]:
    """Return the completed answer of a turn. Raises OpenAIError if it failed, and NotFoundError."""
    async for _text in tail_answer(turn.id, _access_check(turn, api_token_id)):
        pass
    result = await _load_result(turn, api_token_id)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": result.turn.answer, "refusal": None},
        "logprobs": None,
        "finish_reason": _finish_reason(result.turn),
    }
    return _head(turn, "chat.completion") | {
        "model": result.turn.model or DEFAULT_MODEL,
        "choices": [choice],
        "usage": _usage(result.turn),
        "cato": _cato_extension(result),
    }


async def completion_chunks(
    turn: Turn, api_token_id: uuid.UUID, *, model: str, with_usage: bool
) -> AsyncIterator[bytes]:
    """Yield the answer as events. The last one contains what was recalled; a failure is an event of its own."""
    head = _head(turn, "chat.completion.chunk") | {"model": model}
    if with_usage:
        head["usage"] = None
    names = {"thread": str(turn.thread_id), "turn": str(turn.id)}
    yield _event(head | {"choices": [_choice({"role": "assistant", "content": ""})], "cato": names})
    try:
        async for text in tail_answer(turn.id, _access_check(turn, api_token_id)):
            yield _event(head | {"choices": [_choice({"content": text})]})
        result = await _load_result(turn, api_token_id)
    except OpenAIError as error:
        yield _event(error.body)
        return
    except NotFoundError as error:
        yield _event(openai_error_of(error).body)
        return
    head["model"] = result.turn.model or model
    yield _event(
        head | {"choices": [_choice({}, finish_reason=_finish_reason(result.turn))], "cato": _cato_extension(result)}
    )
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(result.turn)})
    yield _DONE


def _access_check(turn: Turn, api_token_id: uuid.UUID) -> Callable[[], bool]:
    return partial(access.can_receive, turn.author_id, turn.thread_id, api_token_id)


async def _load_result(turn: Turn, api_token_id: uuid.UUID) -> AnswerResult:
    if not await run_in_db_thread(_access_check(turn, api_token_id)):
        raise NotFoundError
    result = await run_in_db_thread(load_result, turn.author_id, turn)
    if result.turn.state in (Turn.State.FAILED, Turn.State.INTERRUPTED):
        raise model_failure(result.turn.error_code, result.turn.error)
    return result


def _finish_reason(turn: Turn) -> str:
    """Return the model's reason; a stopped answer ends like a complete one."""
    return turn.finish_reason or Turn.FinishReason.STOP.value


def _head(turn: Turn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id.hex}",
        "object": kind,
        "created": int(turn.created_at.timestamp()),
        "system_fingerprint": None,
    }


def _cato_extension(result: AnswerResult) -> dict[str, Any]:
    return {"thread": str(result.turn.thread_id), "turn": str(result.turn.id), "recalled": result.recalled}


def _usage(turn: Turn) -> dict[str, int] | None:
    """Return the token counts of the model endpoint, or None if it sent none."""
    if not turn.usage:
        return None
    body, completion_tokens = turn.usage["prompt_tokens"], turn.usage["completion_tokens"]
    return {"prompt_tokens": body, "completion_tokens": completion_tokens, "total_tokens": body + completion_tokens}


def _choice(delta: dict[str, Any], *, finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"

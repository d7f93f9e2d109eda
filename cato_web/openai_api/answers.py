"""What programs are told: an answer whole, or event by event, as OpenAI's API says it."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from cato_web.openai_api.models import OWN
from cato_web.openai_api.refusals import OpenAIError, model_failure, openai_error_of
from cato_web.openai_api.saying import Ended, ended
from chat import access
from chat.answers.tail import tail_answer
from chat.executors import run_in_db_thread
from chat.models import Turn
from memory.api import NotFoundError

_DONE = b"data: [DONE]\n\n"


async def whole(turn: Turn, api_token_id: uuid.UUID) -> dict[str, Any]:
    """The answer to this turn when it is complete. Raises OpenAIError where it failed, and NotFoundError."""
    async for _piece in tail_answer(turn.id, _access_check(turn, api_token_id)):
        pass
    end = await _end_of(turn, api_token_id)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": end.turn.answer, "refusal": None},
        "logprobs": None,
        "finish_reason": _finish_reason(end.turn),
    }
    return _head(turn, "chat.completion") | {
        "model": end.turn.model or OWN,
        "choices": [choice],
        "usage": _usage(end.turn),
        "cato": _cato(end),
    }


async def events(turn: Turn, api_token_id: uuid.UUID, *, model: str, with_usage: bool) -> AsyncIterator[bytes]:
    """The answer as it grows. What was recalled comes with the last piece; a failure is an event of its own."""
    head = _head(turn, "chat.completion.chunk") | {"model": model}
    if with_usage:
        head["usage"] = None
    names = {"thread": str(turn.thread_id), "turn": str(turn.id)}
    yield _event(head | {"choices": [_piece({"role": "assistant", "content": ""})], "cato": names})
    try:
        async for text in tail_answer(turn.id, _access_check(turn, api_token_id)):
            yield _event(head | {"choices": [_piece({"content": text})]})
        end = await _end_of(turn, api_token_id)
    except OpenAIError as refusal:
        yield _event(refusal.body)
        return
    except NotFoundError as gone:
        yield _event(openai_error_of(gone).body)
        return
    head["model"] = end.turn.model or model
    yield _event(head | {"choices": [_piece({}, finish_reason=_finish_reason(end.turn))], "cato": _cato(end)})
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(end.turn)})
    yield _DONE


def _access_check(turn: Turn, api_token_id: uuid.UUID) -> Callable[[], bool]:
    return partial(access.may_receive, turn.author_id, turn.thread_id, api_token_id)


async def _end_of(turn: Turn, api_token_id: uuid.UUID) -> Ended:
    if not await run_in_db_thread(_access_check(turn, api_token_id)):
        raise NotFoundError
    end = await run_in_db_thread(ended, turn.author_id, turn)
    if end.turn.state in (Turn.State.FAILED, Turn.State.INTERRUPTED):
        raise model_failure(end.turn.error_code, end.turn.error)
    return end


def _finish_reason(turn: Turn) -> str:
    """As the model gave it; an answer that somebody stopped ends like a complete one."""
    return turn.finish_reason or Turn.FinishReason.STOP.value


def _head(turn: Turn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id.hex}",
        "object": kind,
        "created": int(turn.created_at.timestamp()),
        "system_fingerprint": None,
    }


def _cato(end: Ended) -> dict[str, Any]:
    return {"thread": str(end.turn.thread_id), "turn": str(end.turn.id), "recalled": end.recalled}


def _usage(turn: Turn) -> dict[str, int] | None:
    """What the model's endpoint counted; None where it did not."""
    if not turn.usage:
        return None
    asked, answered = turn.usage["prompt_tokens"], turn.usage["completion_tokens"]
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _piece(delta: dict[str, Any], *, finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"

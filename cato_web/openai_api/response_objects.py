"""Answers in the format of OpenAI's Responses API, complete or as events."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from cato_web.openai_api.conversations import AnswerResult
from cato_web.openai_api.errors import OpenAIError, answer_failure, openai_error_of
from cato_web.openai_api.models import DEFAULT_MODEL
from cato_web.openai_api.response_threads import ResponseRound
from cato_web.openai_api.responses import answer_parts, cato_extension, load_completed, stopping, usage_with_total
from chat.models import Turn
from memory.api import NotFoundError

_INCOMPLETE = {Turn.FinishReason.LENGTH: "max_output_tokens", Turn.FinishReason.CONTENT_FILTER: "content_filter"}


async def wait_for_response(
    response: ResponseRound, api_token_id: uuid.UUID, *, echo: dict[str, Any]
) -> dict[str, Any]:
    """Return the response once its answer is complete. Raises OpenAIError if it failed, and NotFoundError.

    `echo`: fields of the request that the response repeats.
    """
    async for _part in answer_parts(response.turn, api_token_id):
        pass
    return completed_response(response, await load_completed(response.turn, api_token_id)) | echo


def saved_response(response: ResponseRound, result: AnswerResult) -> dict[str, Any]:
    """Return the response as it is saved: complete, failed, or still in progress."""
    turn = result.turn
    response = ResponseRound(turn, response.start)
    if response.is_latest and (turn.is_running or turn.state == Turn.State.QUEUED):
        status = "queued" if turn.state == Turn.State.QUEUED else "in_progress"
        return _response(response) | {"status": status, "cato": cato_extension(result)}
    if response.is_latest and turn.state in (Turn.State.FAILED, Turn.State.INTERRUPTED):
        return _response(response) | _failure(answer_failure(turn)) | {"cato": cato_extension(result)}
    return completed_response(response, result)


def completed_response(response: ResponseRound, result: AnswerResult) -> dict[str, Any]:
    """Return a complete response. A stopped answer ends like a complete one."""
    turn = result.turn
    response = ResponseRound(turn, response.start)
    text, calls = _text_and_calls(response)
    output = [] if calls and not text else [_message(response, text, is_refusal=turn.is_refusal and not calls)]
    reason = _INCOMPLETE.get(Turn.FinishReason(turn.finish_reason)) if turn.finish_reason else None
    return _response(response) | {
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output + [_function_call(call) for call in calls],
        "usage": _usage(turn) if response.is_latest else None,
        "cato": cato_extension(result),
    }


async def response_events(
    response: ResponseRound, api_token_id: uuid.UUID, *, echo: dict[str, Any], is_stopped_when_closed: bool
) -> AsyncIterator[bytes]:
    """Yield the response as typed events, numbered from 0; a failure is an event as well.

    `is_stopped_when_closed`: a client that closes the stream stops the answer.
    """
    turn = response.turn
    events = _EventWriter()
    names = {"thread": str(turn.thread_id), "turn": str(turn.id)}
    begun = _response(response) | {"status": "in_progress", "cato": names} | echo
    try:
        async with stopping(turn, is_stopped_when_closed=is_stopped_when_closed):
            yield events.write("response.created", response=begun)
            yield events.write("response.in_progress", response=begun)
            has_text = False
            async for part in answer_parts(turn, api_token_id):
                if not has_text:
                    yield events.begin_message(_message(response, "", is_refusal=part.is_refusal, status="in_progress"))
                has_text = True
                yield events.write_text(part.text)
            result = await load_completed(turn, api_token_id)
    except OpenAIError as error:
        yield events.write("response.failed", response=begun | _failure(error))
        return
    except NotFoundError as error:
        yield events.write("response.failed", response=begun | _failure(openai_error_of(error)))
        return
    completed = completed_response(response, result) | echo
    for index, item in enumerate(completed["output"]):
        if item["type"] == "message":
            if not has_text:
                yield events.begin_message(_message(response, "", is_refusal=False, status="in_progress"))
            yield events.end_message(item)
        else:
            yield events.call(item, index)
    yield events.write(f"response.{completed['status']}", response=completed)


class _EventWriter:
    """Formats events and counts them. The text is always the first item of the output."""

    def __init__(self) -> None:
        self._number = 0
        self._item_id = ""
        self._is_refusal = False

    def write(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._number} | fields
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()

    def begin_message(self, item: dict[str, Any]) -> bytes:
        self._item_id = item["id"]
        part = item["content"][0]
        self._is_refusal = part["type"] == "refusal"
        added = self.write("response.output_item.added", output_index=0, item=item | {"content": []})
        return added + self._write_part("response.content_part.added", part=part)

    def write_text(self, text: str) -> bytes:
        if self._is_refusal:
            return self._write_part("response.refusal.delta", delta=text)
        return self._write_part("response.output_text.delta", delta=text, logprobs=[])

    def end_message(self, item: dict[str, Any]) -> bytes:
        part = item["content"][0]
        if self._is_refusal:
            done = self._write_part("response.refusal.done", refusal=part["refusal"])
        else:
            done = self._write_part("response.output_text.done", text=part["text"], logprobs=[])
        done += self._write_part("response.content_part.done", part=part)
        return done + self.write("response.output_item.done", output_index=0, item=item)

    def call(self, item: dict[str, Any], index: int) -> bytes:
        begun = item | {"arguments": "", "status": "in_progress"}
        place = {"item_id": item["id"], "output_index": index}
        arguments = item["arguments"]
        return (
            self.write("response.output_item.added", output_index=index, item=begun)
            + self.write("response.function_call_arguments.delta", delta=arguments, **place)
            + self.write("response.function_call_arguments.done", name=item["name"], arguments=arguments, **place)
            + self.write("response.output_item.done", output_index=index, item=item)
        )

    def _write_part(self, kind: str, **fields: Any) -> bytes:
        return self.write(kind, item_id=self._item_id, output_index=0, content_index=0, **fields)


def _response(response: ResponseRound) -> dict[str, Any]:
    """Return the fields that do not depend on the answer."""
    turn = response.turn
    options = turn.generation_options
    return {
        "id": response.id,
        "object": "response",
        "created_at": int(turn.created_at.timestamp()),
        "model": turn.model or turn.requested_model or DEFAULT_MODEL,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "output": [],
        "previous_response_id": None,
        "parallel_tool_calls": options.get("parallel_tool_calls", True),
        "tools": [{"type": "function"} | tool["function"] for tool in options.get("tools", ())],
        "tool_choice": _tool_choice(options.get("tool_choice", "auto")),
        "text": {"format": _text_format(options.get("response_format"))},
        "temperature": options.get("temperature"),
        "top_p": options.get("top_p"),
        "max_output_tokens": options.get("max_tokens"),
        "reasoning": {"effort": options.get("reasoning_effort"), "summary": None},
        "metadata": {},
        "usage": None,
    }


def _tool_choice(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    return {"type": "function"} | choice["function"] if isinstance(choice, dict) else choice


def _text_format(format: dict[str, Any] | None) -> dict[str, Any]:
    return {"type": format["type"]} | format.get("json_schema", {}) if format else {"type": "text"}


def _text_and_calls(response: ResponseRound) -> tuple[str, list[dict[str, Any]]]:
    messages = response.turn.tool_messages
    if len(messages) > response.start:
        return messages[response.start]["content"] or "", messages[response.start]["tool_calls"]
    return response.turn.answer, []


def _message(response: ResponseRound, text: str, *, is_refusal: bool, status: str = "completed") -> dict[str, Any]:
    content: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    if is_refusal:
        content = {"type": "refusal", "refusal": text}
    return {
        "id": response.id.replace("resp_", "msg_", 1),
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [content],
    }


def _function_call(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"fc_{call['id']}",
        "type": "function_call",
        "status": "completed",
        "call_id": call["id"],
        "name": call["function"]["name"],
        "arguments": call["function"]["arguments"],
    }


def _usage(turn: Turn) -> dict[str, Any] | None:
    usage = usage_with_total(turn.usage)
    if usage is None:
        return None
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {
            "reasoning_tokens": usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
        },
        "total_tokens": usage["total_tokens"],
    }


def _failure(error: OpenAIError) -> dict[str, Any]:
    return {"status": "failed", "error": {"code": error.code or error.kind, "message": str(error)}}

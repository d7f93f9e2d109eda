"""A parser of a model endpoint's event stream, with limits, because endpoints are not trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chat.llm.tool_calls import ToolCallError, ToolCallPart, parse_parts

# A long answer can be sent as one line with every character escaped.
MAX_EVENT_BYTES = 4_000_000
_MAX_LINES = 64  # of one event, which is parsed after each of them
MAX_TOKENS = 10**9  # a larger token count is invalid
_MAX_FINGERPRINT = 100  # characters
# The details of the two token counts that are kept.
_USAGE_DETAILS = {"prompt_tokens_details": "cached_tokens", "completion_tokens_details": "reasoning_tokens"}
# Reasons of servers beside OpenAI's, "" for those that interrupt an answer: of Mistral, DeepSeek, OpenRouter and vLLM.
_FINISH_REASONS = {"model_length": "length", "error": "", "abort": "", "insufficient_system_resource": ""}
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


class EventError(Exception):
    """An event is invalid or too long."""


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """A part of an answer's text, reasoning or tool calls; the last chunks can contain finish reason and token usage.

    `is_refusal`: the model refuses to answer with this text. `logprobs` and `system_fingerprint` are as the endpoint sent
    them.
    """

    text: str = ""
    reasoning: str = ""
    usage: dict[str, Any] | None = None
    finish_reason: str = ""
    tool_calls: tuple[ToolCallPart, ...] = ()
    is_refusal: bool = False
    logprobs: dict[str, Any] | None = None
    system_fingerprint: str = ""

    @property
    def has_content(self) -> bool:
        """Return whether the chunk contains a part of the answer itself."""
        return bool(self.text or self.reasoning or self.tool_calls)

    @property
    def is_empty(self) -> bool:
        """Return whether the chunk contains nothing."""
        return not (self.has_content or self.usage or self.finish_reason or self.logprobs)


class EventReader:
    """Parses bytes into the JSON objects of events, whose data can span lines and lack the blank line at the end."""

    def __init__(self) -> None:
        self.is_done = False
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._size = 0

    def feed(self, received: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that `received` completes. Raises EventError after the valid ones."""
        if self._line and self._line[-1].endswith(b"\r"):
            received = self._line.pop() + received
        *lines, rest = _LINE_END.split(received)
        for line in lines:
            whole = b"".join([*self._line, line])
            self._line = []
            event = self._parse_line(whole)
            if self.is_done:
                return
            if event is not None:
                yield event
        self._line.append(rest)
        self._size += len(rest)
        if self._size > MAX_EVENT_BYTES:
            raise EventError("too long")

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the event that the end of the stream completes, if any."""
        return self.feed(b"\n")

    def _parse_line(self, line: bytes) -> dict[str, Any] | None:
        self._size = sum(map(len, self._data))
        if not line.strip():
            if self._data:
                raise EventError("an event that is not JSON")
            return None
        name, _colon, value = line.partition(b":")
        if name != b"data":
            return None
        data = value.decode(errors="replace").strip()
        if data == "[DONE]":
            self.is_done = True
            return None
        self._data.append(data)
        if len(self._data) > _MAX_LINES:
            raise EventError("too many lines")
        return self._complete() if data.endswith("}") else None

    def _complete(self) -> dict[str, Any] | None:
        try:
            event = _DECODER.decode("\n".join(self._data))
        except RecursionError as error:
            raise EventError("too deep") from error
        except ValueError:
            return None  # incomplete: the rest is on the next line
        self._data = []
        return event if isinstance(event, dict) else None


def parse_chunk(event: dict[str, Any]) -> StreamChunk:
    """Return the chunk of an event. Raises EventError for invalid fields."""
    choices = event.get("choices") or [{}]
    choice = choices[0] if isinstance(choices, list) else None
    delta = (choice.get("delta") or {}) if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict):
        raise EventError("choices")
    # Endpoints use different names for reasoning; OpenAI sends none.
    # A refusal is the answer of a model that was asked for structured output.
    content, thoughts = _read_content(delta.get("content"))
    text, reasoning = (
        content or delta.get("refusal") or "",
        thoughts or delta.get("reasoning_content") or delta.get("reasoning") or "",
    )
    if not isinstance(text, str) or not isinstance(reasoning, str):
        raise EventError("text")
    reason, logprobs = str(choice.get("finish_reason") or ""), choice.get("logprobs")
    fingerprint = event.get("system_fingerprint")
    try:
        calls = parse_parts(delta.get("tool_calls"))
    except ToolCallError as error:
        raise EventError(str(error)) from error
    return StreamChunk(
        text,
        reasoning,
        parse_usage(event.get("usage")),
        _FINISH_REASONS.get(reason, reason)[:20],
        calls,
        is_refusal=bool(text and not content),
        logprobs=logprobs if isinstance(logprobs, dict) else None,
        system_fingerprint=fingerprint[:_MAX_FINGERPRINT] if isinstance(fingerprint, str) else "",
    )


def _read_content(content: Any) -> tuple[Any, str]:
    """Return the text and the reasoning of a content, which is a list of parts if a model of Mistral reasons."""
    if not isinstance(content, list):
        return content, ""
    text = reasoning = ""
    for part in content:
        match part:
            case {"type": "text", "text": str(said)}:
                text += said
            case {"type": "thinking", "thinking": [*thoughts]}:
                reasoning += "".join(str(each.get("text", "")) for each in thoughts if isinstance(each, dict))
            case {"type": str()}:
                pass
            case _:
                raise EventError("content")
    return text, reasoning


def parse_usage(usage: Any) -> dict[str, Any] | None:
    """Return the token counts and their details; None if the counts are not plausible integers."""
    if not isinstance(usage, dict):
        return None
    counts: dict[str, Any] = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    if not all(map(_is_count, counts.values())):
        return None
    for name, field in _USAGE_DETAILS.items():
        details = usage.get(name)
        if isinstance(details, dict) and _is_count(details.get(field)):
            counts[name] = {field: details[field]}
    return counts


def add_usage(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of the token counts, and of their details, of two requests."""
    total = dict(one)
    for name, count in other.items():
        total[name] = add_usage(one.get(name, {}), count) if isinstance(count, dict) else one.get(name, 0) + count
    return total


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_TOKENS  # bool is an int too


def _integer(digits: str) -> int:
    """Parse at most 20 digits: Python rejects integers of thousands of digits."""
    return int(digits[:20])


_DECODER = json.JSONDecoder(parse_int=_integer)

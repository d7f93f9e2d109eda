"""Tool calls of a model, which arrive in parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_CALLS = 64  # of one reply
MAX_ARGUMENT_CHARS = 100_000  # of one call


class ToolCallError(Exception):
    """A tool call is invalid or too long."""


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A part of the call at `index`: the first has its id and name, each can have a piece of its JSON arguments."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call; `arguments` are JSON, unless the model made a mistake."""

    id: str
    name: str
    arguments: str

    def as_json(self) -> dict[str, Any]:
        """Return the call in OpenAI's format."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    size: int = 0


def portable_message(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message in a form that all servers accept: with a text, and with arguments of calls that are JSON.

    llama-cpp-python and templates need a text beside calls. Models write arguments that are not JSON by mistake, for which
    Ollama and vLLM reject the whole request; the result of the call tells the model what was wrong.
    """
    if message.get("content", "") is None:
        message = message | {"content": ""}
    if calls := message.get("tool_calls"):
        message = message | {"tool_calls": [*map(_with_readable_arguments, calls)]}
    return message


def _with_readable_arguments(call: dict[str, Any]) -> dict[str, Any]:
    try:
        is_readable = isinstance(json.loads(call["function"]["arguments"]), dict)
    except (ValueError, RecursionError):
        is_readable = False
    return call if is_readable else call | {"function": call["function"] | {"arguments": "{}"}}


class ToolCallCollector:
    """Puts the parts of calls together, in the order in which the calls began.

    Ollama and others send each call as a whole, all of them with the same index; only their ids and names differ.
    """

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}

    def add(self, parts: Iterable[ToolCallPart]) -> None:
        """Add parts. Raises ToolCallError if there are too many calls, or one is too long."""
        for part in parts:
            call = self._by_index.get(part.index)
            if call is None or (part.name and part.id and call.id not in ("", part.id)):
                call = self._by_index[part.index] = _PartialCall()
                self._calls.append(call)
            call.id = call.id or part.id
            call.name = call.name or part.name
            call.arguments.append(part.arguments)
            call.size += len(part.arguments)
            if call.size > MAX_ARGUMENT_CHARS or len(self._calls) > MAX_CALLS:
                raise ToolCallError("tool calls are too long")

    @property
    def calls(self) -> list[ToolCall]:
        """The calls so far; one without an id has its index as such, since some servers send none."""
        return [
            ToolCall(call.id or f"call_{number}", call.name, "".join(call.arguments))
            for number, call in enumerate(self._calls)
        ]


def parse_parts(value: Any) -> tuple[ToolCallPart, ...]:
    """Return the parts in the field `tool_calls` of a delta. Raises ToolCallError for invalid fields."""
    if not value:
        return ()
    if not isinstance(value, list) or len(value) > MAX_CALLS:
        raise ToolCallError("tool_calls")
    return tuple(_parse_part(item, position) for position, item in enumerate(value))


def _parse_part(item: Any, position: int) -> ToolCallPart:
    function = item.get("function") or {} if isinstance(item, dict) else None
    if not isinstance(function, dict):
        raise ToolCallError("function")
    arguments = function.get("arguments") or ""
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)  # as Ollama's own format has them
    # Servers that send each call as a whole leave the index out, or send null.
    index = position if item.get("index") is None else item["index"]
    part = ToolCallPart(index, item.get("id") or "", function.get("name") or "", arguments)
    if type(index) is not int or not all(isinstance(text, str) for text in (part.id, part.name, part.arguments)):
        raise ToolCallError("tool call")
    return part

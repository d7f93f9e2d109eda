"""The tools that a client offers, and the messages with their calls and results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel

from cato_web.openai_api.errors import OpenAIError
from memory.api import clean_text, format_number

MAX_TOOLS = 128
# Tools and messages are stored with the turn, so their sizes are limited, in characters of JSON.
MAX_TOOLS_LENGTH = 200_000
MAX_MESSAGES_LENGTH = 1_000_000
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class FunctionCall(BaseModel):
    """The function that a model calls, with its arguments as JSON."""

    name: str
    arguments: str = ""


class ToolCallMessage(BaseModel):
    """A call of a tool in a message of the assistant."""

    id: str
    type: str = "function"
    function: FunctionCall


def tool_options(tools: Sequence[Any] | None, choice: Any, parallel: bool | None) -> dict[str, Any]:
    """Return the options of the model for these tools; none without tools. Raises OpenAIError."""
    if not tools:
        return {}
    for tool in tools:
        name = _function_name(tool)
        if name is None or not _TOOL_NAME.fullmatch(name):
            sentence = _("Each tool is a function with a name of at most 64 letters, digits, dots, _ and -.")
            raise OpenAIError(sentence, param="tools")
    if len(tools) > MAX_TOOLS or len(json.dumps(tools)) > MAX_TOOLS_LENGTH:
        sentence = _("At most %(most)s tools, of at most %(longest)s characters in all.")
        limits = {"most": format_number(MAX_TOOLS), "longest": format_number(MAX_TOOLS_LENGTH)}
        raise OpenAIError(sentence % limits, param="tools")
    is_choice = choice is None or isinstance(choice, str) or _function_name(choice) is not None
    if not is_choice or len(json.dumps(choice)) > MAX_TOOLS_LENGTH:
        raise OpenAIError(_("tool_choice is none, auto, required or a function."), param="tool_choice")
    options = {"tools": list(tools), "tool_choice": choice, "parallel_tool_calls": parallel}
    return {name: value for name, value in options.items() if value is not None}


def _function_name(value: Any) -> str | None:
    """Return the name of the function that a tool, or the choice of one, has; None if it has none."""
    function = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def call_message(text: str, calls: Sequence[ToolCallMessage]) -> dict[str, Any]:
    """Return a message with calls as it is stored and sent to the model."""
    rows = [
        {
            "id": clean_text(call.id),
            "type": "function",
            "function": {
                "name": clean_text(call.function.name),
                "arguments": clean_text(call.function.arguments),
            },
        }
        for call in calls
    ]
    return {"role": "assistant", "content": clean_text(text) or None, "tool_calls": rows}


def result_message(call_id: str, text: str) -> dict[str, Any]:
    """Return a message with a result as it is stored and sent to the model."""
    return {"role": "tool", "tool_call_id": clean_text(call_id), "content": clean_text(text)}


class ToolSequence:
    """Checks that each call is followed by its result, before any other message."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def add_calls(self, calls: Sequence[ToolCallMessage]) -> None:
        """Open these calls. Raises OpenAIError if earlier ones have no result."""
        self.ensure_closed()
        self._open = {call.id for call in calls}
        if any(call.type != "function" for call in calls) or len(self._open) < len(calls):
            raise OpenAIError(_("Tool calls are of functions, each with an ID of its own."), param="messages")

    def add_result(self, call_id: str | None) -> None:
        """Close a call. Raises OpenAIError if it is not open."""
        if call_id not in self._open:
            sentence = _("A tool message must answer a tool call of the assistant's message before it; %(id)s is none.")
            raise OpenAIError(sentence % {"id": f"“{call_id or ''}”"}, param="messages")
        self._open.remove(call_id)

    def ensure_closed(self) -> None:
        """Raise OpenAIError if a call has no result."""
        if self._open:
            sentence = _("A message with tool_calls must be followed by a tool message for each; %(ids)s has none.")
            raise OpenAIError(sentence % {"ids": ", ".join(sorted(self._open))}, param="messages")


def check_length(messages: Sequence[dict[str, Any]]) -> None:
    """Raise OpenAIError if these calls and results are too long."""
    if messages and len(json.dumps(messages, ensure_ascii=False)) > MAX_MESSAGES_LENGTH:
        sentence = _("The tool messages of an answer have at most %(most)s characters.")
        raise OpenAIError(sentence % {"most": format_number(MAX_MESSAGES_LENGTH)}, param="messages")

"""A model endpoint's stream of events, read within limits: what an endpoint sends is not trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The whole of a long answer may come as one line, each of its characters escaped.
MAX_EVENT_BYTES = 4_000_000  # bytes
_MAX_LINES = 64  # of one event; it is tried as JSON after each of them
MAX_TOKENS = 10**9  # a number above this counts nothing that a model read or wrote
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


class EventError(Exception):
    """What the endpoint sent is no event of an answer, or longer than any may be."""


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """A part of the answer's text, or of the reasoning before it; the last ones may say how it ended and what it cost."""

    text: str = ""
    reasoning: str = ""
    usage: dict[str, int] | None = None
    finish_reason: str = ""


class EventReader:
    """Takes in bytes as they come and gives the JSON objects of the events that they complete.

    An event's data may be spread over several lines, and the blank line after it may be missing.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._size = 0

    def feed(self, received: bytes) -> Iterator[dict[str, Any]]:
        """Raises EventError; what was complete before has been given by then."""
        if self._line and self._line[-1].endswith(b"\r"):
            received = self._line.pop() + received
        *lines, rest = _LINE_END.split(received)
        for line in lines:
            whole = b"".join([*self._line, line])
            self._line = []
            event = self._read(whole)
            if self.is_done:
                return
            if event is not None:
                yield event
        self._line.append(rest)
        self._size += len(rest)
        if self._size > MAX_EVENT_BYTES:
            raise EventError("too long")

    def end(self) -> Iterator[dict[str, Any]]:
        """The same with what is left when nothing more comes."""
        return self.feed(b"\n")

    def _read(self, line: bytes) -> dict[str, Any] | None:
        """The event that this line completes, if it does."""
        self._size = sum(map(len, self._data))
        if not line.strip():
            if self._data:
                raise EventError("an event that is no JSON")
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
            event = json.loads("\n".join(self._data), parse_int=_integer)
        except RecursionError as error:
            raise EventError("too deep") from error
        except ValueError:
            return None  # the rest of it is on the next line, or never comes
        self._data = []
        return event if isinstance(event, dict) else None


def parse_chunk(event: dict[str, Any]) -> StreamChunk:
    """Return what one event says. Raises EventError where its fields are not what they have to be."""
    choices = event.get("choices") or [{}]
    choice = choices[0] if isinstance(choices, list) else None
    delta = (choice.get("delta") or {}) if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict):
        raise EventError("choices")
    # Endpoints disagree on the name; OpenAI's own sends none of it.
    text, reasoning = delta.get("content") or "", delta.get("reasoning_content") or delta.get("reasoning") or ""
    if not isinstance(text, str) or not isinstance(reasoning, str):
        raise EventError("text")
    reason = choice.get("finish_reason")
    return StreamChunk(text, reasoning, _usage(event.get("usage")), str(reason)[:20] if reason else "")


def _usage(used: Any) -> dict[str, int] | None:
    """How many tokens were read and written; None where an endpoint does not say so in whole numbers that can be."""
    if not isinstance(used, dict):
        return None
    counts: dict[str, int] = {}
    for name in ("prompt_tokens", "completion_tokens"):
        count = used.get(name)
        if type(count) is not int or not 0 <= count <= MAX_TOKENS:  # bool is an int too
            return None
        counts[name] = count
    return counts


def _integer(digits: str) -> int:
    """A number as JSON has it; Python refuses those of thousands of digits, which nothing here needs."""
    return int(digits[:20])

"""The last prompt and answer in the transcript of a coding agent, a file with a JSON object on each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

_MAX_BYTES = 200_000_000


class SaidLast(NamedTuple):
    """The last prompt of a person and the text that the agent answered after it, "" if there is none."""

    prompt: str = ""
    answer: str = ""


def last_exchange(path: str) -> SaidLast:
    """Return the last prompt and answer in this file; nothing for a file that is missing, too large or of another kind."""
    file = Path(path)
    try:
        if not path or file.stat().st_size > _MAX_BYTES:
            return SaidLast()
        lines = file.read_bytes().splitlines()
    except (OSError, ValueError):  # a path may contain what no name of a file may
        return SaidLast()
    answer = ""
    for line in reversed(lines):
        role, text = _said(line)
        if role == "assistant" and not answer:
            answer = text
        elif role == "user" and text:
            return SaidLast(text, answer)
    return SaidLast()


def _said(line: bytes) -> tuple[str, str]:
    """Return who said what in a line; results of tools, which come as messages of the user, have no text."""
    try:
        fields = json.loads(line)
        message = fields["message"]
        role, content = message["role"], message["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""
    if fields.get("isMeta") is True:  # added by the agent itself
        return "", ""
    if isinstance(content, str):
        return role, content.strip()
    return role, "\n\n".join(_texts(content)).strip()


def _texts(content: Any) -> list[str]:
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]

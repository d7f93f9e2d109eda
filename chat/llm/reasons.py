"""Reads why a model endpoint rejected a request, without what could be a secret or a text of the prompt.

Endpoints are not trusted, and their errors quote: requests with their texts, keys in part, and addresses of servers behind
them. What is left is plain text for API clients and the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from chat.errors import NO_REASON, EndpointReason
from chat.llm.endpoint import ModelEndpoint
from memory.api import clean_text

MAX_BODY_BYTES = 64_000
_MAX_LENGTH = 400  # characters of a reason
_MAX_READ = 2_000  # characters of a message that are examined
_OMITTED = "[…]"
# Codes such as `context_length_exceeded`.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_SECRETS = re.compile(
    r"""
      (?<![a-z0-9+.-])[a-z0-9+.-]+://\S+                                    # addresses
    | \bdata:\S+
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+                              # email addresses
    | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b                                  # IPv4
    | \[?(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?!\w)\]?(?::\d+)?   # IPv6
    | (?<![\w.-])(?=[\d.-]*[a-z_])[\w.-]+:\d{2,5}\b                         # host and port
    | \blocalhost\b
    | (?<![\w.-])(?:[\w-]+\.)+(?:local|localdomain|lan|internal|intranet|corp|home|private|svc|test)\b
    | \bbearer\s+\S+
    | (?<!\S)\S*?\*{3}\S*                                                   # keys with hidden characters
    | \b(?:sk|pk|rk|gsk|org|proj|hf|xai|nvapi)[-_][\w*.-]{6,}               # keys and accounts of providers
    | \b(?=\w*\d)(?=\w*[a-z])\w{32,}                                        # other keys
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Characters of scripts without blanks between words, each of which counts as a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_KEY_PART = 8  # characters; errors quote keys in part
_QUOTED_WORDS = 4  # as many words in a row that are in the prompt are a quotation


def read_reason(body: bytes, endpoint: ModelEndpoint, messages: Sequence[dict[str, Any]]) -> EndpointReason:
    """Return the reason in the body of an error response to a request with these messages, in one line.

    OpenAI's format is understood, and those of Google, Ollama, vLLM and FastAPI.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return NO_REASON
    return reason_in(content, endpoint, messages)


def reason_in(content: Any, endpoint: ModelEndpoint, messages: Sequence[dict[str, Any]]) -> EndpointReason:
    """Return the reason in the parsed JSON of an error, as `read_reason` does."""
    if isinstance(content, list) and content:
        content = content[0]
    error = content.get("error", content) if isinstance(content, dict) else None
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        return NO_REASON
    message = error.get("message") or error.get("detail")
    return EndpointReason(
        _without_secrets(message, endpoint, messages) if isinstance(message, str) else "",
        _name(error.get("code"), endpoint, messages),
        _name(error.get("type"), endpoint, messages),
        unsupported_field=_unsupported_field(error),
    )


def _unsupported_field(error: dict[str, Any]) -> str:
    """Return the field of the request that is rejected whatever its value; "" if there is none.

    OpenAI names it as `param`. Mistral, and servers with FastAPI, list errors of pydantic.
    """
    if str(error.get("code")).startswith("unsupported_"):
        return str(error.get("param") or "")
    nested = error.get("message")
    details = error.get("detail") or (nested.get("detail") if isinstance(nested, dict) else None)
    for detail in details if isinstance(details, list) else ():
        match detail:
            case {"type": "extra_forbidden", "loc": ["body", str(name), *_]}:
                return name
    return ""


def _name(value: Any, endpoint: ModelEndpoint, messages: Sequence[dict[str, Any]]) -> str:
    is_name = isinstance(value, str) and _NAME.fullmatch(value)
    return value if is_name and _without_secrets(value, endpoint, messages) == value else ""


def _without_secrets(message: str, endpoint: ModelEndpoint, messages: Sequence[dict[str, Any]]) -> str:
    # Quoted texts have their line ends escaped.
    text = " ".join(re.sub(r"\\[nrt]", " ", clean_text(message)[:_MAX_READ]).split())
    text = "".join(letter for letter in text if letter.isprintable())
    key = endpoint.api_key
    if key and any(key[start : start + _KEY_PART] in text for start in range(max(1, len(key) - _KEY_PART + 1))):
        return ""
    text = _SECRETS.sub(_OMITTED, text)
    if host := urlsplit(endpoint.base_url).hostname:
        text = re.sub(rf"(?<!\w){re.escape(host)}(?::\d+)?(?!\w)", _OMITTED, text, flags=re.IGNORECASE)
    text = _without_quotations(text, messages)
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _without_quotations(text: str, messages: Sequence[dict[str, Any]]) -> str:
    """Leave out four or more words in a row that are in the prompt, and messages of fewer words."""
    words = list(_WORD.finditer(text))
    said = [word.group().lower() for word in words]
    quoted: set[int] = set()
    for message in messages:
        prompt = _WORD.findall(" ".join(_texts(message)).lower())
        size = min(_QUOTED_WORDS, len(prompt))
        runs = [tuple(said[start : start + size]) for start in range(len(said) - size + 1)] if size else []
        found = set(runs).intersection(zip(*(prompt[shift:] for shift in range(size)), strict=False))
        for start, run in enumerate(runs):
            if run in found:
                quoted.update(range(start, start + size))
    parts, end = [], 0
    for number, word in enumerate(words):
        if number in quoted:
            if number - 1 not in quoted:
                parts.append(text[end : word.start()] + _OMITTED)
            end = word.end()
    return "".join(parts) + text[end:]


def _texts(message: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a message, without its images."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield str(part.get("text", ""))
    for call in message.get("tool_calls") or ():
        yield str(call["function"]["arguments"])

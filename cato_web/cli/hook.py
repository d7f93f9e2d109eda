"""`cato hook`: the memory of a coding agent, which runs it at its events with a JSON object on standard input.

When a session starts and before a prompt is answered, it prints what Cato recalls, for the agent to add to its context.
When an answer is finished, it keeps the prompt and the answer as a record. It calls the REST API, with the rights of the
token, so Cato can run on another machine. Neither Django nor the configuration is loaded: agents wait for it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePath
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from cato_web.cli import output, standard_input
from cato_web.cli.agent_transcripts import last_exchange
from cato_web.cli.messages import FAILURE, SUCCESS, UsageError
from cato_web.cli.parser import Parser

_TIMEOUT = 10.0  # seconds; the agent waits
_MAX_TEXT = 20_000  # characters of a prompt and of an answer
_START = {"SessionStart"}
_PROMPT = {"UserPromptSubmit", "BeforeAgent"}
_END = {"Stop", "AfterAgent", "agent-turn-complete"}


class HookError(Exception):
    """The event could not be handled. The agent goes on without it."""


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """An event of an agent; `name` is that of the agent's hook. Texts that an event does not have are empty."""

    name: str
    session_id: str
    folder: str
    prompt: str = ""
    answer: str = ""


def main(arguments: Sequence[str]) -> int:
    """Handle one event; return the exit code, which is never 2: agents take that as a refusal of the prompt."""
    try:
        options = _parser().parse_args(arguments)
        event = parse_event(options.event if options.event is not None else standard_input.read_text())
        printed = _handle(event, options)
    except (UsageError, HookError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILURE
    report = output.Report(is_json=False, started_at=0.0)
    report.stream(json.dumps(printed) + "\n")  # in ASCII, which every locale can print
    return report.finish(SUCCESS)


def parse_event(text: str) -> AgentEvent:
    """Return the event in the JSON object of an agent. Raises HookError."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HookError("cato hook reads the JSON object of an agent's event from standard input.") from error
    if not isinstance(fields, dict):
        raise HookError("The event of the agent is not a JSON object.")
    name = _text(fields, "hook_event_name", "type")
    prompt, answer = _text(fields, "prompt"), _text(fields, "prompt_response", "last_assistant_message")
    if name == "agent-turn-complete":
        messages = fields.get("input-messages")
        texts = messages if isinstance(messages, list) else []
        prompt = "\n\n".join(text for text in texts if isinstance(text, str) and text)
        answer = _text(fields, "last-assistant-message")
    elif name in _END and not (prompt and answer):
        said = last_exchange(_text(fields, "transcript_path"))
        prompt, answer = prompt or said.prompt, answer or said.answer
    return AgentEvent(
        name,
        _text(fields, "session_id", "thread-id", "turn-id"),
        PurePath(_text(fields, "cwd")).name,
        _cut(prompt),
        _cut(answer),
    )


def _cut(text: str) -> str:
    """Return the beginning of the text; half characters, which agents leave when they cut a text, become "?"."""
    return text.strip()[:_MAX_TEXT].encode(errors="replace").decode()


def _handle(event: AgentEvent, options: argparse.Namespace) -> dict[str, Any]:
    """Return what to print for the event. Raises HookError."""
    if event.name in _START and event.folder:
        question = f"{event.folder}: what was decided, and what was done last?"
        return _recalled(event, question, options)
    if event.name in _PROMPT and event.prompt:
        return _recalled(event, event.prompt, options)
    if event.name in _END and event.prompt and event.answer:
        _keep(event, options)
    return {}


def _recalled(event: AgentEvent, question: str, options: argparse.Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [question]}
    if options.space is not None:
        body["spaces"] = [options.space]
    try:
        context = _call("/api/recall", body, options)["context"]
    except (KeyError, TypeError) as error:
        raise HookError(f"What responds at {options.url} is not Cato.") from error
    if not context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}


def _keep(event: AgentEvent, options: argparse.Namespace) -> None:
    """Store the prompt with its answer; an answer that is continued replaces the one before."""
    digest = hashlib.sha256(event.prompt.encode()).hexdigest()[:16]
    title = f"{event.folder}: " if event.folder else ""
    record = {
        "id": f"agent-{event.session_id[:200]}-{digest}",
        "text": f"{title}{event.prompt}\n\n{event.answer}",
        "metadata": {"kept_by": "cato hook", "folder": event.folder},
    }
    _call("/api/records", {"records": [record], "space": options.space}, options)


def _call(path: str, body: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Send a request to the API and return its response. Raises HookError."""
    if not options.url.startswith(("http://", "https://")):
        raise HookError(f"--url {options.url}: the address of Cato begins with http:// or https://.")
    try:
        (token,) = options.token_file.expanduser().read_text().split()
    except (OSError, RuntimeError, ValueError) as error:  # no file, no home, or anything but one word in UTF-8
        sentence = "Create an API token in the settings of Cato and write it to {}, or name its file with --token-file."
        raise HookError(sentence.format(options.token_file)) from error
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        request = Request(options.url.rstrip("/") + path, json.dumps(body).encode(), headers)  # noqa: S310  (checked above)
        with urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
            return answer
    except HTTPError as error:
        raise HookError(f"Cato refused the request ({error.code}): {_reason(error)}") from error
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise HookError(f"Cato does not respond at {options.url} ({error}).") from error


def _reason(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return str(error.reason)


def _text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text, "" if none is."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _parser() -> Parser:
    built = Parser(
        prog="cato hook", description="Recall for a coding agent, and keep its results; see docs/connect.md."
    )
    built.add_argument("event", nargs="?", metavar="JSON", help="the event, for agents that pass it as an argument")
    built.add_argument("--url", default="http://127.0.0.1:8000", help="address of Cato; default: %(default)s")
    built.add_argument(
        "--token-file",
        type=Path,
        default=Path("~/.config/cato/token"),
        metavar="PATH",
        help="file with an API token that may read and write; default: %(default)s",
    )
    built.add_argument(
        "--space", metavar="NAME", help="space to recall from and to keep in; default: all, and the personal one"
    )
    return built

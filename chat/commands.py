"""Slash commands: a registry that executes them and from which /help is made."""

from __future__ import annotations

import difflib
import shlex
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from chat.errors import Refused
from chat.items import ItemRow, result_rows
from memory import services as memory
from memory import spaces
from memory.errors import CatoMemoryError
from memory.text import clean_text

_MODES = ("off", "summary", "on")
_MODE_WORDS = {"off": "nothing is shown", "summary": "a count that opens the list", "on": "the list, open"}


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    figure: str


@dataclass(frozen=True, slots=True)
class Card:
    """A command's output: shown to its author alone, kept nowhere. `goes_to` names a page to open instead."""

    command: str
    title: str
    kind: str = "text"
    text: str = ""
    lines: Sequence[Line] = ()
    results: Sequence[ItemRow] = ()
    goes_to: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who gave the command, and what the command may change of theirs."""

    person_id: uuid.UUID
    is_administrator: bool
    context_mode: str
    set_context_mode: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Command:
    """`usage` is shown after the name; `run` gets the caller and the arguments."""

    name: str
    usage: str
    does: str
    run: Callable[[Caller, list[str]], Card]
    aliases: tuple[str, ...] = field(default=())


def is_command(message: str) -> bool:
    """Whether a message is to be read as a command."""
    return message.lstrip().startswith("/")


def run(message: str, caller: Caller) -> Card:
    """Execute a message that starts with `/`. Raises Refused with a suggestion; nothing of it is kept."""
    try:
        name, *arguments = shlex.split(clean_text(message).strip()[1:])
    except ValueError as error:
        raise Refused("A quotation mark is missing. Put text with spaces into two of them.") from error
    command = _NAMES.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists what there is."
        raise Refused(f"There is no command /{name}. {hint}", suggestion=f"/{near[0]}" if near else "/help")
    try:
        return command.run(caller, arguments)
    except CatoMemoryError as error:
        raise Refused(str(error)) from error


def _help(caller: Caller, arguments: list[str]) -> Card:
    if arguments:
        command = _NAMES.get(arguments[0].lstrip("/").lower())
        if command is None:
            raise Refused(f"There is no command /{arguments[0].lstrip('/')}. /help lists what there is.", "/help")
        return Card("/help", f"/{command.name} {command.usage}".strip(), text=command.does)
    lines = [Line(f"/{c.name} {c.usage}".strip(), c.does) for c in COMMANDS]
    return Card("/help", "Commands", kind="list", lines=lines)


def _vstats(caller: Caller, arguments: list[str]) -> Card:
    mine = memory.figures(spaces.readable_by(caller.person_id))
    lines = [
        Line("Exchanges you may read", f"{mine.exchanges:,}"),
        Line("Still to be embedded", f"{mine.pending:,}"),
        Line("Failed", f"{mine.failed:,}"),
        Line("Embedding model", mine.model),
        Line("Vector dimension", str(mine.dimension or "not known yet")),
    ]
    if caller.is_administrator:
        everything = memory.figures(None)
        conf = settings.CATO
        where = conf.chroma_url if conf.origin("chroma_url") != "default" else str(conf.vector_store.path)
        lines += [Line("Exchanges in all", f"{everything.exchanges:,}"), Line("Index", str(where))]
    return Card("/vstats", "Memory", kind="figures", lines=lines)


def _vquery(caller: Caller, arguments: list[str]) -> Card:
    if not arguments:
        raise Refused('What are you looking for? Write /vquery "TEXT" [K].', '/vquery "')
    count = 5
    if len(arguments) > 1 and arguments[-1].isdecimal():
        count = int(arguments.pop())
    text = " ".join(arguments)
    results = memory.find(text, spaces=spaces.readable_by(caller.person_id), count=count)
    title = f"{len(results)} nearest to “{text}”" if results else f"Nothing near “{text}”"
    return Card("/vquery", title, kind="results", results=result_rows(results))


def _showcontext(caller: Caller, arguments: list[str]) -> Card:
    now = caller.context_mode
    mode = arguments[0].lower() if arguments else _MODES[(_MODES.index(now) + 1) % len(_MODES)]
    if mode not in _MODES:
        raise Refused(f"/showcontext takes on, off or summary, not {mode}.", "/showcontext summary")
    caller.set_context_mode(mode)
    return Card("/showcontext", f"Recalled context: {mode}", text=f"Under each answer {_MODE_WORDS[mode]}.")


def _clear(caller: Caller, arguments: list[str]) -> Card:
    return Card("/clear", "A new thread", goes_to="new_thread")


COMMANDS: tuple[Command, ...] = (
    Command(
        "vquery", '"TEXT" [K]', "The K exchanges nearest to TEXT (5, at most 100), with how near they are", _vquery
    ),
    Command("vstats", "", "How much is remembered, by which model, and what is still to be done", _vstats),
    Command("showcontext", "[on|off|summary]", "How what was recalled is shown under your answers", _showcontext),
    Command("clear", "", "Begin a new thread", _clear),
    Command("help", "[COMMAND]", "The commands, or one of them", _help),
)
_NAMES = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

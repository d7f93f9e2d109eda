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
from memory.services.documents import folders
from memory.services.documents.folders import FoundFile
from memory.services.documents.listing import states_of
from memory.text import clean_text
from memory.views.document_rows import Chip, row_of

_MOST_FILES, _MOST_CHIPS = 500, 20
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
    chips: Sequence[Chip] = ()
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


def _vadd(caller: Caller, arguments: list[str]) -> Card:
    text = " ".join(arguments)
    if not text.strip():
        raise Refused('What should be remembered? Write /vadd "TEXT".', '/vadd "')
    kept = memory.keep_text(
        text, space=spaces.own(caller.person_id), owner_id=caller.person_id, source="vadd_command", manual_entry=True
    )
    return Card("/vadd", "Remembered in your own space", text=text, lines=[Line("Exchange", str(kept[0].id))])


def _vdoc(caller: Caller, arguments: list[str]) -> Card:
    locations = settings.CATO.locations
    if not arguments:
        known = ", ".join(f"{alias}:" for alias in sorted(locations)) or "none, see locations in the configuration"
        raise Refused(f"Which file or folder? Write /vdoc ALIAS:PATH. Configured: {known}.", "/vdoc ")
    files = [file for asked in arguments for file in folders.named(locations, asked)]
    if len(files) > _MOST_FILES:
        raise Refused(f"These are {len(files):,} files; add at most {_MOST_FILES} with one command.", "/vdoc ")
    chips = [_received(caller, file) for file in files]
    added = sum(1 for chip in chips if chip.row)
    title = f"{added} of {len(files)} file{'' if len(files) == 1 else 's'} added"
    more = f"and {len(chips) - _MOST_CHIPS} more, on the page Documents" if len(chips) > _MOST_CHIPS else ""
    # What was refused first: it would else be among those that are not shown.
    return Card("/vdoc", title, text=more, chips=sorted(chips, key=lambda chip: not chip.error)[:_MOST_CHIPS])


def _received(caller: Caller, file: FoundFile) -> Chip:
    own = spaces.own(caller.person_id)
    try:
        with folders.opened(file) as content:
            received = memory.receive(
                content, name=file.name, space=own, owner_id=caller.person_id, source="vdoc_command"
            )
    except CatoMemoryError as error:
        return Chip(file.name, error=str(error))
    (state,) = states_of([received.version.document])
    row = row_of(state, person_id=caller.person_id, is_administrator=caller.is_administrator)
    return Chip(file.name, row)


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
    Command("vadd", '"TEXT"', "Remember TEXT in your own space", _vadd),
    Command("vdoc", "ALIAS:PATH…", "Remember files, or folders of them, that lie on the server", _vdoc),
    Command("vstats", "", "How much is remembered, by which model, and what is still to be done", _vstats),
    Command("showcontext", "[on|off|summary]", "How what was recalled is shown under your answers", _showcontext),
    Command("clear", "", "Begin a new thread", _clear),
    Command("help", "[COMMAND]", "The commands, or one of them", _help),
)
_NAMES = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

"""Slash commands: the registry that executes them, and from which /help and the menu are made."""

from __future__ import annotations

import difflib
import shlex

from django.conf import settings

from chat.commands import about, conversing, remembering
from chat.commands.command import Caller, Card, Command, Line
from chat.errors import Refused
from memory.errors import CatoMemoryError, StoreDisabled
from memory.text import clean_text

__all__ = ["COMMANDS", "Caller", "Card", "Command", "is_command", "run"]


def is_command(message: str) -> bool:
    """Whether a message is to be read as a command."""
    return message.lstrip().startswith("/")


def run(message: str, caller: Caller) -> Card:
    """Execute a message that starts with `/`. Raises Refused with a suggestion; nothing of it is kept."""
    try:
        name, *arguments = shlex.split(clean_text(message).strip()[1:]) or [""]
    except ValueError as error:
        raise Refused("A quotation mark is missing. Put text with spaces into two of them.") from error
    command = _NAMES.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists what there is."
        raise Refused(f"There is no command /{name}. {hint}", suggestion=f"/{near[0]}" if near else "/help")
    try:
        if command.needs_memory and not settings.CATO.vector_store.enabled:
            raise StoreDisabled
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


COMMANDS: tuple[Command, ...] = (
    *remembering.COMMANDS,
    *conversing.COMMANDS,
    *about.COMMANDS,
    Command("help", "[COMMAND]", "The commands, or one of them", _help),
)
_NAMES = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

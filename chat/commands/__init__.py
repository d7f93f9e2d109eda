"""Slash commands: the registry for execution, /help and the menu."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Set

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.commands import about, memory, thread
from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError
from memory.api import STORE_DISABLED, VectorStoreDisabledError, clean_text

__all__ = [
    "COMMANDS",
    "Command",
    "CommandContext",
    "CommandResult",
    "for_roles",
    "is_command",
    "is_command_name",
    "run",
    "split_name",
]

_FIRST_SPACE = re.compile(r"\s")
_SLASHES = ("/", "\uff0f")  # the second one is typed on Chinese and Japanese keyboards


def for_roles(roles: Set[str]) -> list[Command]:
    """Return the commands that are for people with these roles."""
    return [command for command in COMMANDS if not command.role or command.role in roles]


def is_command(message: str) -> bool:
    """Return whether a message is a command."""
    return message.lstrip().startswith(_SLASHES)


def is_command_name(name: str) -> bool:
    """Return whether a command has this name or alias, ignoring case."""
    return name.lower() in _NAMES


def split_name(message: str) -> tuple[str, str]:
    """Return the name after the slash of a message that begins with one, and the text after the name."""
    name, _space, rest = _FIRST_SPACE.sub(" ", clean_text(message).strip()[1:], count=1).partition(" ")
    return name, rest


def run(message: str, context: CommandContext) -> CommandResult:
    """Run a command, which is not saved. Raises CatoError."""
    name, rest = split_name(message)
    command = _NAMES.get(name.lower())
    if command is None:
        similar = difflib.get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
        hint = _("Did you mean /%(name)s?") % {"name": similar[0]} if similar else _("See /help.")
        raise InvalidMessageError(f"{_unknown(name)} {hint}", suggestion=f"/{similar[0]}" if similar else "/help")
    if command.needs_memory and not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_(STORE_DISABLED))
    try:
        arguments = [rest] if command.takes_text else shlex.split(rest)
    except ValueError as error:
        raise InvalidMessageError(_('Missing closing quote. Put text with spaces in "quotes".')) from error
    return command.run(context, arguments)


def _help(context: CommandContext, arguments: list[str]) -> CommandResult:
    if arguments:
        command = _NAMES.get(arguments[0].lstrip("/").lower())
        if command is None:
            raise InvalidMessageError(_unknown(arguments[0].lstrip("/")) + " " + _("See /help."), "/help")
        return CommandResult("/help", f"/{command.name} {command.usage}".strip(), text=command.localized_description)
    lines = [LabelledValue(f"/{c.name} {c.usage}".strip(), c.localized_description) for c in COMMANDS]
    return CommandResult("/help", _("Commands"), kind="list", lines=lines)


def _unknown(name: str) -> str:
    return _("Unknown command /%(name)s.") % {"name": name}


COMMANDS: tuple[Command, ...] = (
    *memory.COMMANDS,
    *thread.COMMANDS,
    *about.COMMANDS,
    Command("help", "[COMMAND]", gettext_noop("The commands, or one of them"), _help),
)
_NAMES = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

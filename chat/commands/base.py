"""What a command is: who calls it, what it needs, and the card it gives."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from chat.models import Thread
from chat.rows.recall import RecallItemRow
from memory.api import UploadChip


@dataclass(frozen=True, slots=True)
class LabelledValue:
    label: str
    figure: str


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command's output: shown to its author alone, kept nowhere.

    `goes_to` is an address to open instead; `asks` one of a question that is put first, with the words of its link.
    """

    command: str
    title: str
    kind: str = "text"
    text: str = ""
    lines: Sequence[LabelledValue] = ()
    results: Sequence[RecallItemRow] = ()
    chips: Sequence[UploadChip] = ()
    goes_to: str = ""
    asks: tuple[str, str] = ("", "")
    is_to_copy: bool = False


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Who gave the command, in which thread (None: on the page of a new one), and what it may change of theirs."""

    person_id: uuid.UUID
    is_administrator: bool
    context_mode: str
    set_context_mode: Callable[[str], None]
    thread: Thread | None = None

    def in_thread(self) -> Thread:
        """The thread. Raises InvalidMessageError where there is none yet."""
        if self.thread is None:
            raise InvalidMessageError(_("This command works only in an existing thread."))
        return self.thread


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `usage` is shown after its name; `run` gets the caller and the arguments, split as a shell splits them.

    A command that `takes_text` gets what was typed after its name as it is, as its only argument.
    """

    name: str
    usage: str
    purpose: str
    run: Callable[[CommandContext, list[str]], CommandResult]
    aliases: tuple[str, ...] = field(default=())
    needs_memory: bool = False
    takes_text: bool = False

    @property
    def does(self) -> str:
        """Its purpose, in the language of the pages."""
        return _(self.purpose)


def unquoted(text: str) -> str:
    """The text without quotation marks around the whole of it; otherwise exactly what was typed."""
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text.count(text[0]) == 2
    return text[1:-1] if is_quoted else text


def number_in(arguments: list[str], *, default: int, most: int, usage: str) -> int:
    """The one whole number that may be given. Raises InvalidMessageError for anything else."""
    if not arguments:
        return default
    if len(arguments) > 1 or not arguments[0].isdecimal() or not 1 <= int(arguments[0]) <= most:
        raise InvalidMessageError(
            _("Give a number from 1 to %(most)s: %(usage)s.") % {"most": most, "usage": usage}, usage.split()[0] + " "
        )
    return int(arguments[0])

"""The types of commands."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from chat.models import Thread
from chat.rows.recall import RecallItemRow
from memory.api import Space, UploadChip


@dataclass(frozen=True, slots=True)
class LabelledValue:
    """A line of a command's result; its figure can be a link. `note` is said after the figure."""

    label: str
    figure: str
    url: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command, which is shown only to its author and is not saved.

    `exchange_ids` and `document_ids` are what it added to memory; a thread keeps and shows them instead.
    `redirect_url` is opened instead of showing the result. `confirm` is the URL of a confirmation page and its link text.
    """

    command: str
    title: str
    kind: str = "text"
    text: str = ""
    lines: Sequence[LabelledValue] = ()
    results: Sequence[RecallItemRow] = ()
    chips: Sequence[UploadChip] = ()
    redirect_url: str = ""
    confirm: tuple[str, str] = ("", "")
    is_copyable: bool = False
    exchange_ids: Sequence[uuid.UUID] = ()
    document_ids: Sequence[uuid.UUID] = ()

    @property
    def has_additions(self) -> bool:
        """Return whether the command added something to memory, which a thread keeps."""
        return bool(self.exchange_ids or self.document_ids)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The person who runs a command, and the thread (None: a new one, in `space`, or else their personal space)."""

    person_id: uuid.UUID
    is_administrator: bool
    context_mode: str
    set_context_mode: Callable[[str], None]
    thread: Thread | None = None
    space: Space | None = None

    def in_thread(self) -> Thread:
        """Return the thread. Raises InvalidMessageError if there is none."""
        if self.thread is None:
            raise InvalidMessageError(_("This command works only in an existing thread."))
        return self.thread


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `usage` describes its arguments, which are split like those of a shell.

    With `takes_text`, the text after the name is the only argument, unchanged. `role` is that of the people for whom it
    is, owner (of the thread) or administrator; "": everybody.
    """

    name: str
    usage: str
    description: str
    run: Callable[[CommandContext, list[str]], CommandResult]
    aliases: tuple[str, ...] = ()
    needs_memory: bool = False
    takes_text: bool = False
    role: str = ""

    @property
    def localized_description(self) -> str:
        """The description in the language of the interface."""
        return _(self.description)

"""Export formats of other products and of Cato, detected by their content.

The module of a format has `knows`, which recognises a JSON object as a conversation, or the files of an export, and `read`,
which parses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from django.utils.translation import gettext as _

from chat.imports.formats import archive, cato, chatgpt, claude, librechat, mattermost, open_webui, slack
from chat.imports.formats.archive import ArchivedPart
from chat.imports.formats.conversation import UNKNOWN, UNREADABLE, WITHOUT_MESSAGES, Conversation, Unread
from chat.imports.formats.extras import Memories, Project, is_memories, is_project, read_memories, read_project
from chat.imports.formats.pieces import pieces
from chat.imports.formats.shared_channels import NameOfAccount
from chat.imports.formats.sources import DAMAGED, ExportFiles, streams
from chat.imports.formats.values import Fields, text_in
from memory.api import ExtractionError, content_hash, format_list

__all__ = ["PROVIDERS", "Item", "conversations", "count_conversations"]

Item = Conversation | Project | Memories | ArchivedPart
_FORMATS: tuple[tuple[Callable[[Fields], bool], Callable[[Fields], Item | Unread]], ...] = (
    (cato.knows, cato.read),
    (chatgpt.knows, chatgpt.read),
    (claude.knows, claude.read),
    (open_webui.knows, open_webui.read),
    (librechat.knows, librechat.read),
    (cato.is_note, cato.read_note),
    (cato.is_prompt, cato.read_prompt),
    *archive.PARTS,
    (is_memories, read_memories),
    (is_project, read_project),
)


class _ExportFormat(Protocol):
    """The module of a format whose files belong together."""

    def knows(self, files: ExportFiles) -> bool: ...

    def count(self, files: ExportFiles) -> int: ...

    def read(self, files: ExportFiles, name_of_account: NameOfAccount) -> Iterator[Conversation | Unread]: ...


_EXPORTS: tuple[_ExportFormat, ...] = (slack, mattermost)
PROVIDERS = (
    chatgpt.PROVIDER,
    claude.PROVIDER,
    open_webui.PROVIDER,
    librechat.PROVIDER,
    slack.PROVIDER,
    mattermost.PROVIDER,
    cato.PROVIDER,
)


def conversations(
    source: Path | BinaryIO, *, name_of_account: NameOfAccount = lambda email: ""
) -> Iterator[Item | Unread]:
    """Yield each conversation, project and memory in a JSON file, a zip or a folder, or an `Unread` with the reason.

    Raises InvalidInputError if `source` cannot be opened, and ExtractionError for a zip that is unsafe or damaged.
    """
    with ExportFiles(source) as files:
        if (format := _export_format(files)) is not None:
            yield from format.read(files, name_of_account)
            return
    for name, stream in streams(source):
        try:
            for number, piece in enumerate(pieces(stream), start=1):
                yield _read(piece, _("%(name)s, entry %(number)s") % {"name": name, "number": number})
        except ExtractionError as error:
            yield Unread(name, str(error), UNREADABLE)
        except DAMAGED as error:
            why = _("It cannot be unpacked completely (%(error)s); what came before the damage was read.") % {
                "error": error
            }
            yield Unread(name, why, UNREADABLE)


def count_conversations(source: Path | BinaryIO, *, on_each: Callable[[], None] = lambda: None) -> int:
    """Return the number of items that `conversations` yields, without parsing them; call `on_each` after each.

    Raises the same errors.
    """
    with ExportFiles(source) as files:
        if (format := _export_format(files)) is not None:
            return format.count(files)
    total = 0
    for _name, stream in streams(source):
        try:
            for _piece in pieces(stream):
                total += 1
                on_each()
        except (ExtractionError, *DAMAGED):
            total += 1  # the error is yielded like a conversation
    return total


def _export_format(files: ExportFiles) -> _ExportFormat | None:
    return next((format for format in _EXPORTS if format.knows(files)), None)


def _read(piece: bytes, place: str) -> Item | Unread:
    try:
        item = json.loads(piece)
    except ValueError:
        return Unread(place, _("It is damaged: it is not valid JSON."), UNREADABLE)
    except RecursionError:
        return Unread(place, _("It is nested too deeply to be read."), UNREADABLE)
    read = next((read for knows, read in _FORMATS if knows(item)), None)
    title = text_in(item.get("title")) or text_in(item.get("name")) or place
    if read is None:
        known = format_list(PROVIDERS, last=_("or"))
        return Unread(title, _("It is not a conversation from %(providers)s.") % {"providers": known}, UNKNOWN)
    conversation = read(item)
    if not isinstance(conversation, Conversation):
        return conversation
    if not any(said.role == "user" for said in conversation.messages):
        return Unread(title, _("Empty conversation."), WITHOUT_MESSAGES)
    return conversation if conversation.id else replace(conversation, id=_derived_id(conversation))


def _derived_id(conversation: Conversation) -> str:
    """Return a stable id for a conversation without one, which longer versions of it share."""
    return content_hash(conversation.title, conversation.messages[0].text)

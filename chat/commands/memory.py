"""Commands on memory: keep, find, look at, forget, count."""

from __future__ import annotations

import re
import uuid
from urllib.parse import urlencode

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat import access
from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue, unquoted
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.rows.recall import exchange_row, result_rows
from memory import api as memory
from memory.api import (
    FOUND_BY_WORDS,
    CatoError,
    Exchange,
    NotFoundError,
    ServerFile,
    UploadChip,
    disk_use,
    document_row,
    document_statuses,
    format_number,
    index_location,
)

_MOST_FILES, _MOST_CHIPS, _MOST_SHOWN, _MOST_IDS = 500, 20, 50, 10
_SPACE_OPTION = re.compile(r"(?P<text>.*?)--space\s+(?P<space>\"[^\"]+\"|'[^']+'|\S+)\s*", re.DOTALL)
_COUNT_OPTION = re.compile(r"(?P<text>.*\S)\s+(?P<count>\d{1,9})", re.DOTALL)


def _vadd(caller: CommandContext, arguments: list[str]) -> CommandResult:
    typed = _SPACE_OPTION.fullmatch(arguments[0])
    space = memory.personal_space(caller.person_id)
    if typed is not None:
        space = memory.space_by_name(caller.person_id, unquoted(typed["space"]))
    text = unquoted(typed["text"] if typed is not None else arguments[0])
    if not text.strip():
        raise InvalidMessageError(_("Usage: /vadd TEXT"), "/vadd ")
    kept = memory.add_note(text, space=space, owner_id=caller.person_id, source="vadd_command", manual_entry=True)
    title = _("Saved in %(space)s") % {"space": space.shown_name}
    if space.owner_id:
        title = _("Saved in your personal space")
    lines = [LabelledValue(_("Exchange"), str(row.id)) for row in kept[:_MOST_IDS]]
    if len(kept) > _MOST_IDS:
        lines.append(LabelledValue(_("Exchanges in all"), format_number(len(kept))))
    return CommandResult("/vadd", title, text=text, lines=lines)


def _vdoc(caller: CommandContext, arguments: list[str]) -> CommandResult:
    if not arguments:
        return CommandResult("/vdoc", "", goes_to=reverse("documents"))
    files = [file for asked in arguments for file in memory.resolve_server_path(settings.CATO.locations, asked)]
    if len(files) > _MOST_FILES:
        facts = {"count": format_number(len(files)), "most": _MOST_FILES}
        raise InvalidMessageError(
            _("These are %(count)s files; add at most %(most)s with one command.") % facts, "/vdoc "
        )
    chips = [_received(caller, file) for file in files]
    added = sum(1 for chip in chips if chip.row)
    title = ngettext("%(added)s of %(count)s file added", "%(added)s of %(count)s files added", len(files))
    title %= {"added": added, "count": len(files)}
    more = _("and %(count)s more, on the page Documents") % {"count": len(chips) - _MOST_CHIPS}
    more = more if len(chips) > _MOST_CHIPS else ""
    # What was refused first: it would else be among those that are not shown.
    return CommandResult("/vdoc", title, text=more, chips=sorted(chips, key=lambda chip: not chip.error)[:_MOST_CHIPS])


def _received(caller: CommandContext, file: ServerFile) -> UploadChip:
    own = memory.personal_space(caller.person_id)
    try:
        with memory.open_server_file(file) as content:
            received = memory.upload_document(
                content,
                name=file.name,
                space=own,
                owner_id=caller.person_id,
                source="vdoc_command",
                source_path=str(file.path),
            )
    except CatoError as error:
        return UploadChip(file.name, error=str(error))
    (state,) = document_statuses([received.version.document])
    row = document_row(state, person_id=caller.person_id, is_administrator=caller.is_administrator)
    return UploadChip(file.name, row)


def _vquery(caller: CommandContext, arguments: list[str]) -> CommandResult:
    typed = _COUNT_OPTION.fullmatch(arguments[0].strip())
    count = int(typed["count"]) if typed is not None else 5
    text = unquoted(typed["text"] if typed is not None else arguments[0])
    if not text.strip():
        raise InvalidMessageError(_("What are you looking for? Write /vquery TEXT [K]."), "/vquery ")
    found = memory.search(text, spaces=memory.readable_space_ids(caller.person_id), count=count)
    title = _("%(count)s matches for “%(text)s”") if found.results else _("No matches for “%(text)s”")
    title %= {"count": len(found.results), "text": text}
    note = str(FOUND_BY_WORDS) if found.by_words_alone else ""
    return CommandResult("/vquery", title, kind="results", text=note, results=result_rows(found.results))


def _vget(caller: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1:
        raise InvalidMessageError(_("Which? Write /vget ID, /vget session or /vget thread."), "/vget ")
    (which,) = arguments
    readable = memory.readable_space_ids(caller.person_id)
    rows = memory.in_spaces(Exchange.objects.findable(), readable).select_related("owner")
    if which == "thread":
        rows = rows.filter(thread_id=caller.in_thread().id)
    elif which == "session":
        session = caller.in_thread().sessions.order_by("-seq").first()
        rows = rows.filter(session_id=session.id if session else None)
    else:
        rows = rows.filter(id=_exchange(caller, which, "/vget").id)
    found = list(rows.order_by("timestamp", "id")[: _MOST_SHOWN + 1])
    shown = [exchange_row(row, number) for number, row in enumerate(found[:_MOST_SHOWN], start=1)]
    more = _(", the first %(count)s") % {"count": _MOST_SHOWN} if len(found) > _MOST_SHOWN else ""
    titles = {"thread": _("Remembered of this thread"), "session": _("Remembered of this session")}
    title = f"{titles[which]}{more}" if which in titles else _("One exchange")
    return CommandResult("/vget", title, kind="results", results=shown)


def _vdelete(caller: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1:
        raise InvalidMessageError(_("Which? Write /vdelete ID; /vquery and /vget show ids."), "/vdelete ")
    found = _exchange(caller, arguments[0], "/vdelete")
    if not access.can_forget(caller.person_id, found, is_administrator=caller.is_administrator):
        raise PermissionDeniedError(_("You cannot forget this exchange; only its owner or an administrator can."))
    here = reverse("thread", args=[caller.thread.id]) if caller.thread else reverse("new_thread")
    asks = (f"{reverse('forget', args=[found.id])}?{urlencode({'next': here})}", _("Forget it…"))
    return CommandResult(
        "/vdelete", _("Forget this exchange?"), kind="results", results=[exchange_row(found, 1)], asks=asks
    )


def _vstats(caller: CommandContext, arguments: list[str]) -> CommandResult:
    mine = memory.memory_counts(memory.readable_space_ids(caller.person_id))
    lines = [
        LabelledValue(_("Exchanges you may read"), format_number(mine.exchanges)),
        LabelledValue(_("Still to be embedded"), format_number(mine.pending)),
        LabelledValue(_("Failed"), format_number(mine.failed)),
        LabelledValue(_("Embedding model"), mine.model),
        LabelledValue(_("Vector dimension"), str(mine.dimension or _("not known yet"))),
    ]
    if caller.is_administrator:
        everything, used = memory.memory_counts(None), disk_use()
        size = _("on another machine") if used.index is None else filesizeformat(used.index)
        lines += [
            LabelledValue(_("Exchanges in all"), format_number(everything.exchanges)),
            LabelledValue(_("Search index"), index_location()),
            LabelledValue(_("Size on disk"), size),
        ]
    return CommandResult("/vstats", _("Memory"), kind="figures", lines=lines)


def _exchange(caller: CommandContext, text: str, command: str) -> Exchange:
    try:
        return access.get_exchange(caller.person_id, uuid.UUID(text))
    except ValueError as error:
        sentence = _("“%(text)s” is not an exchange ID. /vquery shows IDs.") % {"text": text}
        raise InvalidMessageError(sentence, f"{command} ") from error
    except NotFoundError as error:
        raise InvalidMessageError(_("There is no such exchange, or it is not yours to see."), f"{command} ") from error


COMMANDS = (
    Command(
        "vquery",
        "TEXT [K]",
        gettext_noop("Search memory: K most similar exchanges (default 5)"),
        _vquery,
        takes_text=True,
    ),
    Command(
        "vadd",
        "TEXT [--space NAME]",
        gettext_noop("Save TEXT as a note (personal space unless --space is given)"),
        _vadd,
        needs_memory=True,
        takes_text=True,
    ),
    Command(
        "vdoc",
        "[ALIAS:PATH…]",
        gettext_noop("Add files from a configured server folder"),
        _vdoc,
        needs_memory=True,
    ),
    Command("vget", "ID | session | thread", gettext_noop("Show what is remembered"), _vget, needs_memory=True),
    Command("vdelete", "ID", gettext_noop("Forget one exchange (asks first)"), _vdelete, needs_memory=True),
    Command("vstats", "", gettext_noop("Memory statistics"), _vstats, needs_memory=True),
)

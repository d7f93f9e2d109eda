"""Commands on memory: add notes and documents, search, show, forget, count."""

from __future__ import annotations

import re
import uuid

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat import access
from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.rows.recall import exchange_row, result_rows
from memory import api as memory
from memory.api import (
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

_MAX_FILES, _MAX_CHIPS, _MAX_EXCHANGES, _MAX_IDS = 500, 20, 50, 10
# Atomic, so that a quoted name is not taken in part.
_SPACE = r"--space(?:\s+|=)(?P<space>(?>\"[^\"]+\"|'[^']+'|\S+))"
_SPACE_OPTION_FIRST = re.compile(rf"\s*{_SPACE}\s+(?P<text>.+)", re.DOTALL)
_SPACE_OPTION_LAST = re.compile(rf"(?P<text>.*?){_SPACE}\s*", re.DOTALL)
# Another number than 1 to 100 is a part of the text.
_COUNT_OPTION = re.compile(r"(?P<text>.*\S)\s+(?P<count>[1-9][0-9]?|100)", re.DOTALL)


def _vadd(context: CommandContext, arguments: list[str]) -> CommandResult:
    option = _SPACE_OPTION_FIRST.fullmatch(arguments[0]) or _SPACE_OPTION_LAST.fullmatch(arguments[0])
    space = memory.personal_space(context.person_id)
    if option is not None:
        space = memory.space_by_name(context.person_id, _strip_quotes(option["space"]))
    text = _strip_quotes(option["text"] if option is not None else arguments[0])
    if not memory.has_visible_text(text):
        raise InvalidMessageError(_("Usage: /vadd TEXT"), "/vadd ")
    exchanges = memory.add_note(text, space=space, owner_id=context.person_id, source="vadd_command", manual_entry=True)
    title = _("Saved in %(space)s") % {"space": space.display_name}
    if space.owner_id:
        title = _("Saved in your personal space")
    lines = [LabelledValue(_("Exchange"), str(row.id), row.get_absolute_url()) for row in exchanges[:_MAX_IDS]]
    if len(exchanges) > _MAX_IDS:
        lines.append(LabelledValue(_("Exchanges in all"), format_number(len(exchanges))))
    return CommandResult("/vadd", title, text=text, lines=lines, exchange_ids=[row.id for row in exchanges])


def _vdoc(context: CommandContext, arguments: list[str]) -> CommandResult:
    if not arguments:
        return CommandResult("/vdoc", "", redirect_url=reverse("documents"))
    files = [file for path in arguments for file in memory.resolve_server_path(settings.CATO.locations, path)]
    if len(files) > _MAX_FILES:
        facts = {"count": format_number(len(files)), "most": _MAX_FILES}
        raise InvalidMessageError(
            _("These are %(count)s files; add at most %(most)s with one command.") % facts, "/vdoc "
        )
    chips = [_upload_file(context, file) for file in files]
    added = sum(1 for chip in chips if chip.row)
    title = ngettext("%(added)s of %(count)s file added", "%(added)s of %(count)s files added", len(files))
    title %= {"added": added, "count": len(files)}
    more = _("and %(count)s more, on the page Documents") % {"count": len(chips) - _MAX_CHIPS}
    more = more if len(chips) > _MAX_CHIPS else ""
    # Errors first, because not all chips are shown.
    return CommandResult(
        "/vdoc",
        title,
        text=more,
        chips=sorted(chips, key=lambda chip: not chip.error)[:_MAX_CHIPS],
        document_ids=[chip.row.id for chip in chips if chip.row],
    )


def _upload_file(context: CommandContext, file: ServerFile) -> UploadChip:
    try:
        with memory.open_server_file(file) as content:
            upload = memory.upload_document(
                content,
                name=file.name,
                space=memory.personal_space(context.person_id),
                owner_id=context.person_id,
                source="vdoc_command",
                source_path=str(file.path),
            )
    except CatoError as error:
        return UploadChip(file.name, error=str(error))
    (status,) = document_statuses([upload.version.document])
    row = document_row(status, person_id=context.person_id, is_administrator=context.is_administrator)
    return UploadChip(file.name, row)


def _vquery(context: CommandContext, arguments: list[str]) -> CommandResult:
    option = _COUNT_OPTION.fullmatch(arguments[0].strip())
    count = int(option["count"]) if option is not None else 5
    text = _strip_quotes(option["text"] if option is not None else arguments[0])
    if not text.strip():
        raise InvalidMessageError(_("What are you looking for? Write /vquery TEXT [K]."), "/vquery ")
    readable = memory.readable_space_ids(context.person_id)
    results = memory.search(text, spaces=readable, count=count, reader_id=context.person_id)
    title = _("%(count)s matches for “%(text)s”") if results.results else _("No matches for “%(text)s”")
    title %= {"count": len(results.results), "text": text}
    return CommandResult("/vquery", title, kind="results", text=results.note_text, results=result_rows(results.results))


def _vget(context: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1:
        raise InvalidMessageError(_("Which? Write /vget ID, /vget session or /vget thread."), "/vget ")
    (target,) = arguments
    readable = memory.readable_space_ids(context.person_id)
    rows = memory.in_spaces(Exchange.objects.findable(), readable).select_related("owner")
    if target == "thread":
        rows = rows.filter(thread_id=context.in_thread().id)
    elif target == "session":
        session = context.in_thread().sessions.order_by("-seq").first()
        rows = rows.filter(session_id=session.id if session else None)
    else:
        rows = rows.filter(id=_exchange(context, target, "/vget").id)
    exchanges = list(rows.order_by("timestamp", "id")[: _MAX_EXCHANGES + 1])
    results = [exchange_row(row, number) for number, row in enumerate(exchanges[:_MAX_EXCHANGES], start=1)]
    more = _(", the first %(count)s") % {"count": _MAX_EXCHANGES} if len(exchanges) > _MAX_EXCHANGES else ""
    titles = {"thread": _("Remembered of this thread"), "session": _("Remembered of this session")}
    title = f"{titles[target]}{more}" if target in titles else _("One exchange")
    return CommandResult("/vget", title, kind="results", results=results)


def _vdelete(context: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1:
        raise InvalidMessageError(_("Which? Write /vdelete ID; /vquery and /vget show ids."), "/vdelete ")
    exchange = _exchange(context, arguments[0], "/vdelete")
    if not access.can_forget(context.person_id, exchange, is_administrator=context.is_administrator):
        raise PermissionDeniedError(_("You cannot forget this exchange; only its owner or an administrator can."))
    back_url = reverse("thread", args=[context.thread.id]) if context.thread else reverse("new_thread")
    confirm = (reverse("forget_exchange", args=[exchange.id], query={"next": back_url}), _("Forget it…"))
    return CommandResult(
        "/vdelete", _("Forget this exchange?"), kind="results", results=[exchange_row(exchange, 1)], confirm=confirm
    )


def _vstats(context: CommandContext, arguments: list[str]) -> CommandResult:
    counts = memory.memory_counts(memory.readable_space_ids(context.person_id))
    lines = [
        LabelledValue(_("Exchanges you may read"), format_number(counts.exchanges)),
        LabelledValue(_("Still to be embedded"), format_number(counts.pending)),
        LabelledValue(_("Failed"), format_number(counts.failed)),
        LabelledValue(_("Embedding model"), counts.model),
        LabelledValue(_("Vector dimension"), str(counts.dimension or _("not known yet"))),
    ]
    if context.is_administrator:
        everything, used = memory.memory_counts(None), disk_use()
        size = _("on another machine") if used.index is None else filesizeformat(used.index)
        lines += [
            LabelledValue(_("Exchanges in all"), format_number(everything.exchanges)),
            LabelledValue(_("Search index"), index_location()),
            LabelledValue(_("Size on disk"), size),
        ]
    return CommandResult("/vstats", _("Memory"), kind="figures", lines=lines)


def _exchange(context: CommandContext, text: str, command: str) -> Exchange:
    try:
        return access.get_exchange(context.person_id, uuid.UUID(text))
    except ValueError as error:
        sentence = _("“%(text)s” is not an exchange ID. /vquery shows IDs.") % {"text": text}
        raise InvalidMessageError(sentence, f"{command} ") from error
    except NotFoundError as error:
        raise InvalidMessageError(_("There is no such exchange, or it is not yours to see."), f"{command} ") from error


def _strip_quotes(text: str) -> str:
    """Remove quotation marks that enclose the whole text."""
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text.count(text[0]) == 2
    return text[1:-1] if is_quoted else text


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

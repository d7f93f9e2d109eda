"""Commands on threads: continue, show and delete turns, export, set the model."""

from __future__ import annotations

import uuid
from functools import partial

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat import access, services
from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.llm import endpoint
from chat.llm.choices import read_model_lists, validate_choice
from chat.llm.endpoint import ModelEndpoint
from chat.models import Thread
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.rows.model_picker import MAX_SHOWN, ModelPickerRow, ModelRow, model_picker_row
from memory.api import excerpt, parse_number

_MIN_ID_LENGTH = 6
_MAX_TURNS = 50


def _continue(context: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1 or len(arguments[0].replace("-", "")) < _MIN_ID_LENGTH:
        raise InvalidMessageError(
            _("Usage: /continue ID (the first %(count)s characters are enough)") % {"count": _MIN_ID_LENGTH},
            "/continue ",
        )
    thread = _thread(context, arguments[0])
    services.continue_thread(thread, person_id=context.person_id)
    return CommandResult("/continue", "", redirect_url=reverse("thread", args=[thread.id]))


def _thread(context: CommandContext, text: str) -> Thread:
    """Return the only readable thread whose id starts with `text`."""
    prefix = text.strip().lower().replace("-", "")
    if not all(char in "0123456789abcdef" for char in prefix) or len(prefix) > 32:
        raise InvalidMessageError(
            _("“%(text)s” is not a thread ID. You find it in the URL of the thread.") % {"text": text},
            "/continue ",
        )
    low, high = uuid.UUID(prefix.ljust(32, "0")), uuid.UUID(prefix.ljust(32, "f"))
    threads = list(access.readable_threads(context.person_id).filter(id__range=(low, high))[:2])
    if not threads:
        raise InvalidMessageError(_("Thread %(id)s not found.") % {"id": text}, "/continue ")
    if len(threads) > 1:
        raise InvalidMessageError(
            _("“%(id)s” matches several threads. Use more characters.") % {"id": text}, "/continue "
        )
    return threads[0]


def _history(context: CommandContext, arguments: list[str]) -> CommandResult:
    count = _parse_count(arguments, default=10, usage="/history [N]")
    thread = context.in_thread()
    turns = list(thread.turns.active_branch().select_related("author").order_by("-position")[:count])[::-1]
    lines = [
        LabelledValue(f"{t.author.name}: {excerpt(t.message, 100)}", excerpt(t.answer, 120) or t.state) for t in turns
    ]
    title = ngettext("The last %(count)s turns", "The last %(count)s turns", len(turns)) % {"count": len(turns)}
    return CommandResult("/history", title, kind="list", lines=lines)


def _delete(context: CommandContext, arguments: list[str]) -> CommandResult:
    count = _parse_count(arguments, default=1, usage="/delete [N]")
    thread = context.in_thread()
    if "owner" not in access.roles_in_thread(context.person_id, thread):
        raise PermissionDeniedError(_("Only the owner of this thread can delete turns."))
    turns = list(thread.turns.active_branch().order_by("-position")[:count])[::-1]
    lines = [LabelledValue(excerpt(t.message, 100), excerpt(t.answer, 120)) for t in turns]
    confirm = (reverse("delete_turns", args=[thread.id], query={"n": len(turns)}), _("Delete…"))
    title = ngettext("Delete and forget the last turn?", "Delete and forget the last %(count)s turns?", len(turns))
    return CommandResult("/delete", title % {"count": len(turns)}, kind="list", lines=lines, confirm=confirm)


def _model(context: CommandContext, arguments: list[str]) -> CommandResult:
    current = endpoint.current()
    thread = context.in_thread()
    if not arguments:
        return _list_models(context, thread, current)
    thread = access.thread_to_configure(context.person_id, thread.id)
    name = " ".join(arguments)
    if name == "default":
        name = ""
    elif current is not None:
        name = validate_choice(name, space=thread.space)
    services.set_model(thread, name)
    title = _displayed_model(current, name)
    if current is not None:
        publish(frames.model_changed(thread.id, title))
    return CommandResult("/model", title, text=_("Used from the next message."))


def _list_models(context: CommandContext, thread: Thread, current: ModelEndpoint | None) -> CommandResult:
    can_change = access.can_configure(context.person_id, thread)
    hint = _("Write /model NAME to change it for this thread.") if can_change else ""
    title = _displayed_model(current, thread.model)
    if current is None:
        return CommandResult("/model", title, text=hint)
    among = [current, *endpoint.list_further()]
    picker = model_picker_row(among, read_model_lists(among), thread.model, space=thread.space)
    groups = picker.groups or (picker,)
    lines = [LabelledValue(row.choice, _describe(row, group)) for group in groups for row in group.models]
    return CommandResult("/model", title, kind="list", text=f"{_note(picker)} {hint}".strip(), lines=lines)


def _displayed_model(current: ModelEndpoint | None, chosen: str) -> str:
    return chosen or _("not connected") if current is None else current.displayed_model(chosen)


def _note(picker: ModelPickerRow) -> str:
    """Return why the list is not complete, or ""."""
    if picker.error:
        return picker.error
    if not picker.is_listed:
        return _("%(host)s lists no models.") % {"host": picker.host}
    if picker.is_cut:
        return _("Only %(count)s models are listed here.") % {"count": MAX_SHOWN}
    return ""


def _describe(row: ModelRow, group: ModelPickerRow) -> str:
    facts = {
        _("current"): row.is_current,
        _("default"): row.is_default,
        _("not offered"): not row.is_offered,
        group.location: bool(group.location),
        group.refusal: bool(group.refusal),
    }
    return ", ".join(text for text, is_true in facts.items() if is_true)


def _export(kind: str, context: CommandContext, arguments: list[str]) -> CommandResult:
    url = reverse("export_thread", args=[context.in_thread().id, kind])
    return CommandResult(f"/write{kind}", "", redirect_url=url)


def _copy(context: CommandContext, arguments: list[str]) -> CommandResult:
    last = context.in_thread().turns.active_branch().exclude(answer="").order_by("-position").first()
    if last is None:
        raise InvalidMessageError(_("There is no answer to copy yet."))
    return CommandResult("/copy", _("The last answer"), text=last.answer, is_copyable=True)


def _clear(context: CommandContext, arguments: list[str]) -> CommandResult:
    return CommandResult("/clear", _("A new thread"), redirect_url=reverse("new_thread"))


def _parse_count(arguments: list[str], *, default: int, usage: str) -> int:
    """Parse an optional number of turns. Raises InvalidMessageError."""
    if not arguments:
        return default
    (text, *others) = arguments
    number = parse_number(text)
    if others or number is None or not 1 <= number <= _MAX_TURNS:
        sentence = _("Give a number from 1 to %(most)s: %(usage)s.") % {"most": _MAX_TURNS, "usage": usage}
        raise InvalidMessageError(sentence, usage.split()[0] + " ")
    return number


COMMANDS = (
    Command(
        "continue",
        "ID",
        gettext_noop("Continue an older thread in a new session"),
        _continue,
        ("cont",),
        needs_memory=True,
    ),
    Command("history", "[N]", gettext_noop("The last N turns of this thread (default 10)"), _history),
    Command("delete", "[N]", gettext_noop("Delete and forget the last N turns (default 1)"), _delete, role="owner"),
    Command("model", "[NAME]", gettext_noop("Show or change the model of this thread"), _model),
    Command("writemd", "", gettext_noop("Export this thread as Markdown"), partial(_export, "md")),
    Command("writejson", "", gettext_noop("Export this thread as JSON"), partial(_export, "json")),
    Command("copy", "", gettext_noop("Copy the last answer"), _copy),
    Command("clear", "", gettext_noop("Begin a new thread"), _clear),
)

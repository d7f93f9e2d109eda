"""Commands on the thread one is in: continue, look back, take back, export, its model."""

from __future__ import annotations

import uuid

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat import access, services
from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue, number_in
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.llm import endpoint
from chat.models import Thread
from memory.api import excerpt

_SHORTEST_ID = 6
_MOST_BACK = 50


def _continue(caller: CommandContext, arguments: list[str]) -> CommandResult:
    if len(arguments) != 1 or len(arguments[0]) < _SHORTEST_ID:
        raise InvalidMessageError(
            _("Usage: /continue ID (the first %(count)s characters are enough)") % {"count": _SHORTEST_ID},
            "/continue ",
        )
    thread = _thread(caller, arguments[0])
    services.continue_thread(thread, person_id=caller.person_id)
    return CommandResult("/continue", "", goes_to=reverse("thread", args=[thread.id]))


def _thread(caller: CommandContext, text: str) -> Thread:
    """The one thread that this person reads whose id is, or begins with, `text`."""
    begins = text.strip().lower().replace("-", "")
    if not all(char in "0123456789abcdef" for char in begins) or len(begins) > 32:
        raise InvalidMessageError(
            _("“%(text)s” is not a thread ID. You find it in the URL of the thread.") % {"text": text},
            "/continue ",
        )
    low, high = uuid.UUID(begins.ljust(32, "0")), uuid.UUID(begins.ljust(32, "f"))
    found = list(access.readable_threads(caller.person_id).filter(id__range=(low, high))[:2])
    if not found:
        raise InvalidMessageError(_("Thread %(id)s not found.") % {"id": text}, "/continue ")
    if len(found) > 1:
        raise InvalidMessageError(
            _("“%(id)s” matches several threads. Use more characters.") % {"id": text}, "/continue "
        )
    return found[0]


def _history(caller: CommandContext, arguments: list[str]) -> CommandResult:
    count = number_in(arguments, default=10, most=_MOST_BACK, usage="/history [N]")
    thread = caller.in_thread()
    turns = list(thread.turns.active_branch().select_related("author").order_by("-position")[:count])[::-1]
    lines = [
        LabelledValue(f"{t.author.name}: {excerpt(t.message, 100)}", excerpt(t.answer, 120) or t.state) for t in turns
    ]
    title = ngettext("The last %(count)s turns", "The last %(count)s turns", len(turns)) % {"count": len(turns)}
    return CommandResult("/history", title, kind="list", lines=lines)


def _delete(caller: CommandContext, arguments: list[str]) -> CommandResult:
    count = number_in(arguments, default=1, most=_MOST_BACK, usage="/delete [N]")
    thread = caller.in_thread()
    if thread.owner_id != caller.person_id:
        raise PermissionDeniedError(_("Only the owner of this thread can delete turns."))
    turns = list(thread.turns.active_branch().order_by("-position")[:count])[::-1]
    lines = [LabelledValue(excerpt(t.message, 100), excerpt(t.answer, 120)) for t in turns]
    asks = (f"{reverse('take_out', args=[thread.id])}?n={len(turns)}", _("Delete…"))
    title = ngettext("Delete and forget the last turn?", "Delete and forget the last %(count)s turns?", len(turns))
    return CommandResult("/delete", title % {"count": len(turns)}, kind="list", lines=lines, asks=asks)


def _model(caller: CommandContext, arguments: list[str]) -> CommandResult:
    answering = endpoint.current()
    configured = answering.model if answering else _("not connected")
    thread = caller.in_thread()
    if not arguments:
        can_change = access.can_configure(caller.person_id, thread)
        hint = _("Write /model NAME to change it for this thread.") if can_change else ""
        return CommandResult("/model", thread.model or configured, text=hint)
    thread = access.thread_to_configure(caller.person_id, thread.id)
    name = " ".join(arguments)
    if name == configured or name == "default":
        name = ""
    services.set_model(thread, name)
    return CommandResult("/model", name or configured, text=_("Used from the next message."))


def _writemd(caller: CommandContext, arguments: list[str]) -> CommandResult:
    return CommandResult("/writemd", "", goes_to=reverse("export", args=[caller.in_thread().id, "md"]))


def _writejson(caller: CommandContext, arguments: list[str]) -> CommandResult:
    return CommandResult("/writejson", "", goes_to=reverse("export", args=[caller.in_thread().id, "json"]))


def _copy(caller: CommandContext, arguments: list[str]) -> CommandResult:
    last = caller.in_thread().turns.active_branch().exclude(answer="").order_by("-position").first()
    if last is None:
        raise InvalidMessageError(_("There is no answer to copy yet."))
    return CommandResult("/copy", _("The last answer"), text=last.answer, is_to_copy=True)


def _clear(caller: CommandContext, arguments: list[str]) -> CommandResult:
    return CommandResult("/clear", _("A new thread"), goes_to=reverse("new_thread"))


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
    Command("delete", "[N]", gettext_noop("Delete and forget the last N turns (default 1)"), _delete),
    Command("model", "[NAME]", gettext_noop("Show or change the model of this thread"), _model),
    Command("writemd", "", gettext_noop("Export this thread as Markdown"), _writemd),
    Command("writejson", "", gettext_noop("Export this thread as JSON"), _writejson),
    Command("copy", "", gettext_noop("Copy the last answer"), _copy),
    Command("clear", "", gettext_noop("Begin a new thread"), _clear),
)

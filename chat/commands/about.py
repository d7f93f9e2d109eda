"""Commands on Cato itself: what is shown, how it is set, and help."""

from __future__ import annotations

import json

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.llm.prompts import system_prompt

_MODES = ("off", "summary", "on")
_UNDER_ANSWERS = {
    "off": gettext_noop("Recalled passages: hidden"),
    "summary": gettext_noop("Recalled passages: collapsed"),
    "on": gettext_noop("Recalled passages: expanded"),
}


def _showcontext(caller: CommandContext, arguments: list[str]) -> CommandResult:
    now = caller.context_mode
    mode = arguments[0].lower() if arguments else _MODES[(_MODES.index(now) + 1) % len(_MODES)]
    if mode not in _MODES:
        raise InvalidMessageError(
            _("/showcontext takes on, off or summary, not %(mode)s.") % {"mode": mode}, "/showcontext summary"
        )
    caller.set_context_mode(mode)
    return CommandResult("/showcontext", _("Recalled context: %(mode)s") % {"mode": mode}, text=_(_UNDER_ANSWERS[mode]))


def _config(caller: CommandContext, arguments: list[str]) -> CommandResult:
    if not caller.is_administrator:
        raise PermissionDeniedError(_("Only administrators see the settings in force."))
    wanted = arguments[0] if arguments else ""
    lines = [
        LabelledValue(key, json.dumps(value, default=str)) for key, value in _flat(settings.CATO_SHOWN) if wanted in key
    ]
    if not lines:
        raise InvalidMessageError(_("No setting is called %(name)s.") % {"name": wanted}, "/config")
    return CommandResult("/config", _("The settings in force"), kind="list", lines=lines)


def _flat(values: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, value))
    return pairs


def _showsys(caller: CommandContext, arguments: list[str]) -> CommandResult:
    return CommandResult(
        "/showsys", _("The system prompt"), text=system_prompt(caller.thread.instructions if caller.thread else "")
    )


COMMANDS = (
    Command("showcontext", "[on|off|summary]", gettext_noop("How what was recalled is shown"), _showcontext),
    Command("showsys", "", gettext_noop("The system prompt"), _showsys),
    Command("config", "[KEY]", gettext_noop("The settings in force (administrators)"), _config),
)

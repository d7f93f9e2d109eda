"""Commands on Cato itself: how recalled passages are shown, the system prompt, the configuration."""

from __future__ import annotations

import json

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.instructions.applying import prompt_text, read_applicable
from chat.llm.prompts import system_prompt

_MODES = ("off", "summary", "on")
_MODE_TEXTS = {
    "off": gettext_noop("Recalled passages: hidden"),
    "summary": gettext_noop("Recalled passages: collapsed"),
    "on": gettext_noop("Recalled passages: expanded"),
}


def _showcontext(context: CommandContext, arguments: list[str]) -> CommandResult:
    next_mode = _MODES[(_MODES.index(context.context_mode) + 1) % len(_MODES)]
    mode = arguments[0].lower() if arguments else next_mode
    if mode not in _MODES:
        raise InvalidMessageError(
            _("/showcontext takes on, off or summary, not %(mode)s.") % {"mode": mode}, "/showcontext summary"
        )
    context.set_context_mode(mode)
    return CommandResult("/showcontext", _("Recalled context: %(mode)s") % {"mode": mode}, text=_(_MODE_TEXTS[mode]))


def _config(context: CommandContext, arguments: list[str]) -> CommandResult:
    if not context.is_administrator:
        raise PermissionDeniedError(_("Only administrators see the settings in force."))
    name = arguments[0] if arguments else ""
    values = [(key, value) for key, value in _flatten(settings.CATO_SHOWN) if name in key]
    lines = [LabelledValue(key, json.dumps(value, default=str)) for key, value in values]
    if not lines:
        raise InvalidMessageError(_("No setting is called %(name)s.") % {"name": name}, "/config")
    return CommandResult("/config", _("The settings in force"), kind="list", lines=lines)


def _flatten(values: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            pairs += _flatten(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, value))
    return pairs


def _showsys(context: CommandContext, arguments: list[str]) -> CommandResult:
    thread = context.thread
    standing = prompt_text(read_applicable(thread)) if thread else ""
    text = system_prompt(thread.instructions if thread else "", standing=standing)
    return CommandResult("/showsys", _("The system prompt"), text=text)


COMMANDS = (
    Command("showcontext", "[on|off|summary]", gettext_noop("How what was recalled is shown"), _showcontext),
    Command("showsys", "", gettext_noop("The system prompt"), _showsys),
    Command("config", "[KEY]", gettext_noop("The settings in force (administrators)"), _config, role="administrator"),
)

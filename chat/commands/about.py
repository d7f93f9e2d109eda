"""Commands on Cato itself: how recalled passages are shown, the system prompt, the configuration."""

from __future__ import annotations

import json

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.commands.base import Command, CommandContext, CommandResult, LabelledValue
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.instructions.applying import prompt_text, read_applicable
from chat.llm.prompts import system_prompt
from chat.models import Thread
from chat.settings_in_force import settings_in_force
from memory.api import personal_space

_MODES = ("off", "summary", "on")
_MODE_TEXTS = {
    "off": gettext_noop("Recalled passages: hidden"),
    "summary": gettext_noop("Recalled passages: collapsed"),
    "on": gettext_noop("Recalled passages: expanded"),
}

_ORIGIN_TEXTS = {
    "default": gettext_noop("default"),
    "file": gettext_noop("from the file"),
    "environment": gettext_noop("from the environment"),
    "command line": gettext_noop("from the command line"),
    "page": gettext_noop("from the page Model settings"),
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
    lines = [
        LabelledValue(setting.key, _setting_text(setting.value), note=_(_ORIGIN_TEXTS[setting.origin]))
        for setting in settings_in_force()
        if name in setting.key
    ]
    if not lines:
        raise InvalidMessageError(_("No setting is called %(name)s.") % {"name": name}, "/config")
    return CommandResult("/config", _("The settings in force"), kind="list", lines=lines)


def _setting_text(value: object) -> str:
    return _("not set") if value is None else json.dumps(value, default=str, ensure_ascii=False)


def _showsys(context: CommandContext, arguments: list[str]) -> CommandResult:
    thread = context.thread or Thread(space=context.space or personal_space(context.person_id))
    text = system_prompt(thread.instructions, standing=prompt_text(read_applicable(thread)))
    return CommandResult("/showsys", _("The system prompt"), text=text)


COMMANDS = (
    Command("showcontext", "[on|off|summary]", gettext_noop("How what was recalled is shown"), _showcontext),
    Command("showsys", "", gettext_noop("The system prompt"), _showsys),
    Command("config", "[KEY]", gettext_noop("The settings in force (administrators)"), _config, role="administrator"),
)

"""Commands on Cato itself: what is shown, how it is set, and help."""

from __future__ import annotations

import json

from django.conf import settings

from chat.commands.command import Caller, Card, Command, Line
from chat.errors import Refused
from chat.prompts import system_prompt

_MODES = ("off", "summary", "on")
_MODE_WORDS = {"off": "nothing is shown", "summary": "a count that opens the list", "on": "the list, open"}


def _showcontext(caller: Caller, arguments: list[str]) -> Card:
    now = caller.context_mode
    mode = arguments[0].lower() if arguments else _MODES[(_MODES.index(now) + 1) % len(_MODES)]
    if mode not in _MODES:
        raise Refused(f"/showcontext takes on, off or summary, not {mode}.", "/showcontext summary")
    caller.set_context_mode(mode)
    return Card("/showcontext", f"Recalled context: {mode}", text=f"Under each answer {_MODE_WORDS[mode]}.")


def _config(caller: Caller, arguments: list[str]) -> Card:
    if not caller.is_administrator:
        raise Refused("Only administrators see the settings in force.")
    wanted = arguments[0] if arguments else ""
    lines = [Line(key, json.dumps(value, default=str)) for key, value in _flat(settings.CATO_SHOWN) if wanted in key]
    if not lines:
        raise Refused(f"No setting is called {wanted}.", "/config")
    return Card("/config", "The settings in force", kind="list", lines=lines)


def _flat(values: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, value))
    return pairs


def _showsys(caller: Caller, arguments: list[str]) -> Card:
    return Card("/showsys", "The system prompt", text=system_prompt())


COMMANDS = (
    Command("showcontext", "[on|off|summary]", "How what was recalled is shown", _showcontext),
    Command("showsys", "", "The system prompt", _showsys),
    Command("config", "[KEY]", "The settings in force (administrators)", _config),
)

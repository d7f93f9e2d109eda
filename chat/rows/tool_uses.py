"""Template rows of the tools that the model used for an answer, and of the calls that wait for permission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.models import Turn
from chat.tools.uses import ToolUse, tool_uses

_TEXTS = {
    "running": gettext_noop("Using {tool} of {server}"),
    "allowed": gettext_noop("Using {tool} of {server}"),
    "done": gettext_noop("Used {tool} of {server}"),
    "failed": gettext_noop("Could not use {tool} of {server}. The answer continues without it."),
    "declined": gettext_noop("Did not use {tool} of {server}"),
    "expired": gettext_noop("Did not use {tool} of {server}: nobody allowed it"),
}


@dataclass(frozen=True, slots=True)
class ToolUseRow:
    """A call of a tool: its sentence, who decided about it, its arguments and what it returned."""

    text: SafeString
    decision: str
    arguments: str
    result: str
    is_running: bool
    is_failed: bool


@dataclass(frozen=True, slots=True)
class ToolQuestionRow:
    """A call that waits for permission; `url` is "" for people who may not decide. `asker` is who may, with the managers."""

    text: SafeString
    arguments: str
    asker: str
    expires_at: datetime | None
    url: str


def tool_use_rows(turn: Turn) -> Sequence[ToolUseRow]:
    """Return the calls of a turn's answer about which nothing has to be decided."""
    return [_use_row(turn, use) for use in tool_uses(turn) if not _asks(turn, use)]


def tool_question_rows(turn: Turn) -> Sequence[ToolQuestionRow]:
    """Return the calls of a running answer that wait for permission."""
    return [
        ToolQuestionRow(
            text=_text(gettext_noop("May the model use {tool} of {server}?"), use),
            arguments=use.arguments,
            asker=turn.author.name,
            expires_at=use.expires_at,
            url=reverse("decide_tool_use", args=[turn.thread_id, turn.id, use.id]),
        )
        for use in tool_uses(turn)
        if _asks(turn, use)
    ]


def _asks(turn: Turn, use: ToolUse) -> bool:
    return use.state == "waiting" and turn.is_running


def _use_row(turn: Turn, use: ToolUse) -> ToolUseRow:
    state = use.state
    # A call that a stop or a restart has interrupted: what waited was not allowed, what ran has returned nothing.
    if not turn.is_running:
        state = {"waiting": "declined", "allowed": "failed", "running": "failed"}.get(state, state)
    return ToolUseRow(
        text=_text(_TEXTS[state], use),
        decision=_decision(use),
        arguments=use.arguments,
        result=use.result,
        is_running=state in ("running", "allowed"),
        is_failed=state == "failed",
    )


def _decision(use: ToolUse) -> str:
    if not use.decided_by:
        return ""
    sentence = _("declined by %(name)s") if use.state == "declined" else _("allowed by %(name)s")
    return sentence % {"name": use.decided_by}


def _text(sentence: str, use: ToolUse) -> SafeString:
    return format_html(
        _(sentence),
        tool=format_html('<strong dir="auto">{}</strong>', use.title),
        server=format_html('<span dir="auto">{}</span>', use.server),
    )

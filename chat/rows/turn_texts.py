"""What a turn says about itself: its phase, why its answer ended, and what memory made of it."""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.llm.failures import cut_off_note
from chat.models import Turn
from chat.web_search.records import searches_web
from memory.api import format_number

THINKING = gettext_noop("Thinking…")
_WAITING = gettext_noop("Waiting for permission")
_MEMORY_TEXTS = {
    "remembering": gettext_noop("Remembering…"),
    "remembered": gettext_noop("Remembered"),
    "waiting": gettext_noop("Waiting for the search index"),
    "failed": gettext_noop("Could not save to memory."),
    "forgotten": gettext_noop("Forgotten"),
    "off": gettext_noop("Not remembered"),
}


def memory_text(state: str) -> str:
    """Return the text of a state of memory, "" for one without a text."""
    return _(_MEMORY_TEXTS[state]) if state in _MEMORY_TEXTS else ""


def phase_text(turn: Turn) -> str:
    """Return what an answer without text is doing or waiting for."""
    if turn.state == Turn.State.QUEUED:
        return _queue_text(turn)
    if turn.state == Turn.State.RECALLING:
        return _("Recalling and searching the web…") if searches_web(turn) else _("Recalling…")
    if turn.answer:
        return ""
    texts = {"answering": THINKING, "waiting": _WAITING}
    return _(texts[turn.state]) if turn.state in texts else ""


def _queue_text(turn: Turn) -> str:
    """Return whether a queued turn waits for its thread or for other answers of its author."""
    if turn.thread.is_answering():
        return _("Queued until the previous answer ends")
    limit = settings.CATO.chat.concurrent_answers
    sentence = ngettext(
        "Queued: %(name)s already has %(count)s answer in progress",
        "Queued: %(name)s already has %(count)s answers in progress",
        limit,
    )
    return sentence % {"name": turn.author.name, "count": format_number(limit)}


def tools_note(turn: Turn) -> str:
    """Return which tools of an API client the answer called."""
    return _("Called %(tools)s") % {"tools": ", ".join(turn.called_tools)} if turn.called_tools else ""


def withheld_note(turn: Turn) -> str:
    """Return what the endpoint of the answer was not sent, because its data policy excludes it; "" if nothing."""
    if not turn.withheld:
        return ""
    host, sources, instructions = (turn.withheld[name] for name in ("of", "sources", "instructions"))
    parts = []
    if sources is None:
        parts.append(_("Sources of other spaces not sent to %(host)s.") % {"host": host})
    elif sources:
        sentence = ngettext(
            "%(count)s source not sent to %(host)s.", "%(count)s sources not sent to %(host)s.", sources
        )
        parts.append(sentence % {"count": format_number(sources), "host": host})
    if instructions:
        sentence = ngettext(
            "%(count)s instruction not sent to %(host)s.", "%(count)s instructions not sent to %(host)s.", instructions
        )
        parts.append(sentence % {"count": format_number(instructions), "host": host})
    return " ".join(parts)


def fallback_note(turn: Turn) -> str:
    """Return that another endpoint than the chosen one answered; "" otherwise."""
    if not turn.fallback:
        return ""
    by, instead_of = turn.fallback["by"], turn.fallback["instead_of"]
    return _("Answered by %(by)s, because %(instead_of)s did not answer.") % {"by": by, "instead_of": instead_of}


def end_note(turn: Turn) -> str:
    """Return why the answer ended early or was cut off, "" otherwise."""
    if turn.state == Turn.State.STOPPED:
        if turn.error or turn.stopped_by is None:
            return turn.error or _("Stopped")
        return _("Stopped by %(name)s") % {"name": turn.stopped_by.name}
    if turn.state == Turn.State.INTERRUPTED:
        return (
            _("Interrupted. The partial answer was saved.")
            if turn.answer
            else _("Interrupted before the answer started.")
        )
    if turn.state == Turn.State.COMPLETE:
        return cut_off_note(turn.finish_reason)
    return turn.error if turn.state == Turn.State.FAILED else ""

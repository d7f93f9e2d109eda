"""Titles written by the model after a thread's first answer, unless a person has set one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chat.llm.client import Message
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_link_changed, notify_thread_changed
from memory.api import clean_text, excerpt, without_citations

_MAX_PROMPT_CHARS = 2000  # of the message, and of the answer
_MAX_TITLE_LENGTH = 80
_INSTRUCTION = (
    "Give the conversation below a title of two to six words, in its own language. "
    "Answer with the title alone: no quotation marks, no full stop, no word about what you do."
)


def title_prompt(turn: Turn) -> list[Message] | None:
    """Return the prompt for a title of this turn's thread, loaded with it; None if it needs none."""
    is_answered = turn.state == Turn.State.COMPLETE and not turn.waits_for_tools
    if not is_answered or turn.is_dummy or turn.parent_id is not None:
        return None
    if not settings.CATO.chat.titles or turn.thread.title_source != Thread.TitleSource.FIRST_MESSAGE:
        return None
    message, answer = turn.message[:_MAX_PROMPT_CHARS], turn.answer[:_MAX_PROMPT_CHARS]
    text = f"<message>\n{message}\n</message>\n<answer>\n{answer}\n</answer>"
    return [{"role": "system", "content": _INSTRUCTION}, {"role": "user", "content": text}]


def apply_model_title(thread: Thread, reply: str, *, usage: dict[str, Any] | None = None) -> bool:
    """Set the title of the thread, loaded with its space, from the model's reply, with the `usage` of the request.

    Return False, and store nothing, if the reply contains no title, or the thread has another one since: a person has set
    it, or the first message was forgotten everywhere.
    """
    lines = [line for line in clean_text(reply).splitlines() if line.strip()]
    title = excerpt(without_citations(lines[0]).strip(" \t#*\"'“”„«».") if lines else "", _MAX_TITLE_LENGTH)
    if not title:
        return False
    unchanged = Thread.objects.filter(id=thread.id, title=thread.title, title_source=Thread.TitleSource.FIRST_MESSAGE)
    updated = unchanged.update(title=title, title_source=Thread.TitleSource.MODEL, uncounted_title=usage)
    if updated:
        notify_link_changed(thread)
    return bool(updated)


def reset_title(thread: Thread) -> None:
    """Give a thread that has lost its first message the title of a new one, unless a person has set it."""
    Thread.objects.filter(id=thread.id).update(opening_hash="")
    derived = Thread.objects.filter(id=thread.id).exclude(title_source=Thread.TitleSource.USER)
    derived.update(title=_("New thread"), title_source=Thread.TitleSource.FIRST_MESSAGE)
    notify_thread_changed(thread.id)

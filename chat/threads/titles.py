"""Titles that the model gives: after a thread's first answer, unless somebody gave one of their own."""

from __future__ import annotations

import uuid

from django.conf import settings

from chat.llm.client import Message
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from memory.text import clean_text, excerpt

_ASKED_FROM = 2000
_LONGEST = 80
_INSTRUCTION = (
    "Give the conversation below a title of two to six words, in its own language. "
    "Answer with the title alone: no quotation marks, no full stop, no word about what you do."
)


def title_prompt(turn_id: uuid.UUID) -> list[Message] | None:
    """What to ask the model for a title of this turn's thread; None where it needs none."""
    turn = Turn.objects.select_related("thread").filter(id=turn_id, state=Turn.State.COMPLETE).first()
    if turn is None or not settings.CATO.chat.titles or turn.is_dummy:
        return None
    if turn.parent_id is not None or turn.thread.titled_by != Thread.TitledBy.FIRST:
        return None
    said = f"<message>\n{turn.message[:_ASKED_FROM]}\n</message>\n<answer>\n{turn.answer[:_ASKED_FROM]}\n</answer>"
    return [{"role": "system", "content": _INSTRUCTION}, {"role": "user", "content": said}]


def apply_model_title(thread_id: uuid.UUID, said: str) -> bool:
    """Call the thread what the model `said`; False where that is no title, or somebody was quicker."""
    lines = [line for line in clean_text(said).splitlines() if line.strip()]
    title = excerpt(lines[0].strip(" \t#*\"'“”„«».") if lines else "", _LONGEST)
    if not title:
        return False
    named = Thread.objects.filter(id=thread_id, titled_by=Thread.TitledBy.FIRST).update(
        title=title, titled_by=Thread.TitledBy.MODEL
    )
    if named:
        notify_thread_changed(thread_id)
    return bool(named)

"""Frames: HTML fragments for the pages of a thread, rendered once for all readers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from chat import access
from chat.models import Thread, Turn
from chat.realtime.hub import Frame
from chat.realtime.presence import PresentUser
from chat.rows.sidebar import thread_groups
from chat.rows.turns import THINKING, TurnRow, turn_rows

# Placeholders in the cached templates.
_NOBODY = uuid.UUID(int=0)
_REVISION, _HTML = "{revision}", "{html}"


def answer_progress(
    thread_id: uuid.UUID,
    turn_id: uuid.UUID,
    revision: int,
    finished: Sequence[str],
    open_html: str,
    *,
    is_first: bool,
    segments: Sequence[str] = (),
    is_reset: bool = False,
    reasoning: str = "",
) -> Frame:
    """Return a frame with new reasoning, finished blocks, and the open block.

    `is_first`: no block was finished before. `segments`: parts of an open block too long to be sent whole each time;
    `is_reset`: the block of earlier segments is finished.
    """
    # The text is inserted last, so that it cannot contain a placeholder.
    appended, replaced, waiting = (
        template.replace(str(_NOBODY), str(turn_id)) for template in _progress_templates(is_first)
    )
    if reasoning and not open_html:
        replaced = waiting
    html = replaced.replace(_REVISION, str(revision)).replace(_HTML, open_html, 1)
    if segments or is_reset:
        new = {"turn_id": turn_id, "segments": mark_safe("".join(segments)), "is_reset": is_reset}
        html = render_to_string("chat/frames/segments.html", new) + html
    if finished:
        html = appended.replace(_HTML, "".join(finished), 1) + html
    if reasoning:
        html = _reasoning(turn_id, reasoning) + html
    return Frame(thread_id, html, turn_id, revision)


@cache
def _progress_templates(is_first: bool) -> tuple[str, str, str]:
    """Render the fragments of a running answer once, with placeholders.

    An answer publishes some fifteen frames a second; rendering each with Django cost more than everything else.
    """
    blank = {
        "id": _NOBODY,
        "revision": _REVISION,
        "blocks_html": not is_first,
        "open_html": mark_safe(_HTML),
        "state": Turn.State.ANSWERING,
        "is_running": True,
    }
    both = render_to_string("chat/frames/answer_progress.html", {"finished": mark_safe(_HTML), "turn": blank})
    replaced = render_to_string("chat/frames/answer_progress.html", {"finished": "", "turn": blank})
    thinking = {"finished": "", "turn": blank | {"phase_text": _(THINKING)}}
    return (
        both.removesuffix(replaced.lstrip()),
        replaced,
        render_to_string("chat/frames/answer_progress.html", thinking),
    )


def _reasoning(turn_id: uuid.UUID, reasoning: str) -> str:
    return render_to_string("chat/frames/reasoning.html", {"turn_id": turn_id, "reasoning": reasoning})


def turn(turn_id: uuid.UUID) -> Frame:
    """Return a frame that replaces the whole turn and the button that sends or stops."""
    return _whole("chat/frames/turn.html", turn_id)


def new_turn(turn_id: uuid.UUID) -> Frame:
    """Return a frame that appends a turn to the thread."""
    return _whole("chat/frames/new_turn.html", turn_id)


def answer_finished(
    turn_id: uuid.UUID, last_blocks: Sequence[str] = (), last_reasoning: str = ""
) -> tuple[Frame, Frame]:
    """Return a frame with the last reasoning and blocks of a finished answer, and a frame with its footer."""
    reasoning = _reasoning(turn_id, last_reasoning) if last_reasoning else ""
    last = {"finished": mark_safe("".join(last_blocks)), "reasoning": mark_safe(reasoning)}
    return _whole("chat/frames/answer_finished.html", turn_id, **last), turn_footer(turn_id)


def turn_footer(turn_id: uuid.UUID) -> Frame:
    """Return a frame with the footer of a finished turn and the button that sends."""
    return replace(_whole("chat/frames/turn_footer.html", turn_id), is_footer=True)


def branch_switched(thread_id: uuid.UUID, removed_ids: Sequence[uuid.UUID], added_ids: Sequence[uuid.UUID]) -> Frame:
    """Return a frame that removes and appends the turns of a branch switch."""
    turns = Turn.objects.filter(id__in=added_ids).select_related("author", "thread").order_by("position")
    rows = turn_rows(Thread.objects.get(id=thread_id), turns)
    return Frame(thread_id, snapshot([], rows, removed_ids))


def thread_list(person_id: uuid.UUID, open_id: uuid.UUID | None) -> str:
    """Return the HTML of a person's thread list and of the title of the open thread."""
    title = (
        access.readable_threads(person_id).filter(id=open_id).values_list("title", flat=True).first() if open_id else ""
    )
    context = {"groups": thread_groups(person_id, open_id), "title": title}
    return render_to_string("chat/frames/thread_list.html", context)


def presence(thread_id: uuid.UUID, people: Sequence[PresentUser]) -> Frame:
    """Return a frame with the people who have the thread open."""
    return Frame(thread_id, render_to_string("chat/frames/presence.html", {"people": people}))


def snapshot(rows: Sequence[TurnRow], missing: Sequence[TurnRow], removed_ids: Sequence[uuid.UUID] = ()) -> str:
    """Return HTML that replaces changed turns, appends missing ones, and removes those not on the active branch."""
    active = next((row for row in [*rows, *missing] if row.is_running), None)
    context = {"changed": rows, "missing": missing, "gone": removed_ids, "active": active}
    return render_to_string("chat/frames/snapshot.html", context)


def _whole(template: str, turn_id: uuid.UUID, **more: object) -> Frame:
    turn = Turn.objects.select_related("author", "thread").get(id=turn_id)
    (row,) = turn_rows(turn.thread, [turn])
    active = (
        Turn.objects.filter(thread_id=turn.thread_id, state__in=Turn.RUNNING_STATES)
        .select_related("author", "thread")
        .first()
    )
    active_row = None
    if active is not None:
        active_row = row if active.id == turn.id else turn_rows(active.thread, [active])[0]
    html = render_to_string(template, {"turn": row, "active": active_row, **more})
    return Frame(turn.thread_id, html, turn.id, turn.revision)

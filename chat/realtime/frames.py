"""Fragments for the pages of a thread, drawn once for everyone who reads it."""

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

# What stands in the forms where a frame has its own.
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
    thought: str = "",
) -> Frame:
    """What the model thought since the last frame, the blocks its answer just finished, and the rest of the open block.

    `is_first`: no block of the answer is finished, so that the open one stands at its top. `segments`: those of an open
    block that is too long to be sent whole each time; `is_reset`: the block that earlier ones belong to is finished.
    """
    # What somebody said is filled in last, so that nothing in it is taken for a place to fill in.
    appended, replaced, waiting = (form.replace(str(_NOBODY), str(turn_id)) for form in _growing_forms(is_first))
    if thought and not open_html:
        replaced = waiting
    html = replaced.replace(_REVISION, str(revision)).replace(_HTML, open_html, 1)
    if segments or is_reset:
        new = {"turn_id": turn_id, "segments": mark_safe("".join(segments)), "is_reset": is_reset}
        html = render_to_string("chat/frames/segments.html", new) + html
    if finished:
        html = appended.replace(_HTML, "".join(finished), 1) + html
    if thought:
        html = _thought(turn_id, thought) + html
    return Frame(thread_id, html, turn_id, revision)


@cache
def _growing_forms(is_first: bool) -> tuple[str, str, str]:
    """The fragments of a growing answer, drawn once by their template with places to fill in.

    There are some fifteen of them a second for each answer; drawing each anew cost more than all else together.
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


def _thought(turn_id: uuid.UUID, thought: str) -> str:
    return render_to_string("chat/frames/reasoning.html", {"turn_id": turn_id, "thought": thought})


def turn(turn_id: uuid.UUID) -> Frame:
    """The whole turn, in place where the page has it, and the button that sends or stops."""
    return _whole("chat/frames/turn.html", turn_id)


def new_turn(turn_id: uuid.UUID) -> Frame:
    """A turn that pages do not have yet, at the end of the thread."""
    return _whole("chat/frames/new_turn.html", turn_id)


def answer_finished(turn_id: uuid.UUID, last_blocks: Sequence[str] = (), last_thought: str = "") -> tuple[Frame, Frame]:
    """An answer that is over: what was thought last and its last blocks; and its foot."""
    thought = _thought(turn_id, last_thought) if last_thought else ""
    last = {"finished": mark_safe("".join(last_blocks)), "thought": mark_safe(thought)}
    return _whole("chat/frames/answer_finished.html", turn_id, **last), turn_footer(turn_id)


def turn_footer(turn_id: uuid.UUID) -> Frame:
    """What stands under a turn that is over, and the button that sends again."""
    return replace(_whole("chat/frames/turn_footer.html", turn_id), is_foot=True)


def branch_switched(thread_id: uuid.UUID, removed_ids: Sequence[uuid.UUID], added_ids: Sequence[uuid.UUID]) -> Frame:
    """Another branch of a thread stands: the turns that go, and those that come, at the end and in their order."""
    turns = Turn.objects.filter(id__in=added_ids).select_related("author", "thread").order_by("position")
    rows = turn_rows(Thread.objects.get(id=thread_id), turns)
    return Frame(thread_id, snapshot([], rows, removed_ids))


def thread_list(person_id: uuid.UUID, open_id: uuid.UUID | None) -> str:
    """One person's list of threads as it is now, and what the one that is open is called."""
    title = (
        access.readable_threads(person_id).filter(id=open_id).values_list("title", flat=True).first() if open_id else ""
    )
    context = {"groups": thread_groups(person_id, open_id), "title": title}
    return render_to_string("chat/frames/thread_list.html", context)


def presence(thread_id: uuid.UUID, people: Sequence[PresentUser]) -> Frame:
    """Who has the thread open."""
    return Frame(thread_id, render_to_string("chat/frames/presence.html", {"people": people}))


def snapshot(rows: Sequence[TurnRow], missing: Sequence[TurnRow], removed_ids: Sequence[uuid.UUID] = ()) -> str:
    """What a page lacks when it comes (back): turns that changed, in place, turns it has never seen, and those that no
    longer stand."""
    active = next((row for row in [*rows, *missing] if row.is_running), None)
    context = {"changed": rows, "missing": missing, "gone": removed_ids, "active": active}
    return render_to_string("chat/frames/snapshot.html", context)


def _whole(template: str, turn_id: uuid.UUID, **more: object) -> Frame:
    found = Turn.objects.select_related("author", "thread").get(id=turn_id)
    (row,) = turn_rows(found.thread, [found])
    active = (
        Turn.objects.filter(thread_id=found.thread_id, state__in=Turn.RUNNING_STATES)
        .select_related("author", "thread")
        .first()
    )
    active_row = None
    if active is not None:
        active_row = row if active.id == found.id else turn_rows(active.thread, [active])[0]
    html = render_to_string(template, {"turn": row, "active": active_row, **more})
    return Frame(found.thread_id, html, found.id, found.revision)

"""Frames: HTML fragments for the pages of a thread, rendered once for all readers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from chat import access
from chat.mentions import count_unseen, latest_unseen, mentioned_names
from chat.models import Attachment, Thread, Turn
from chat.realtime.messages import Frame, ListChanges
from chat.realtime.presence import visitors
from chat.rows import sidebar
from chat.rows.attachments import attachment_rows, read_progress
from chat.rows.memory_searches import MemorySearchesRow
from chat.rows.queue import Waiting
from chat.rows.sources import RecallSummaryRow
from chat.rows.turn_texts import THINKING
from chat.rows.turns import ActiveTurn, TurnDetails, TurnRow, read_footer_details, turn_row, turn_rows

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


def posted_turn(turn: Turn, attachments: Sequence[Attachment]) -> Frame:
    """Return a frame that appends the only version of a message that was just posted."""
    mentioned = mentioned_names([turn]).get(turn.id, ())
    row = turn_row(turn, TurnDetails(attachments=attachments, mentioned=mentioned))
    # A message is answered at once only if none is queued before it.
    waiting = Waiting(ActiveTurn.of(turn), None) if turn.is_running else _waiting(turn.thread_id)
    html = render_to_string("chat/frames/new_turn.html", {"turn": row} | waiting._asdict())
    return Frame(turn.thread_id, html, turn.id, turn.revision)


def answer_started(turn: Turn, details: TurnDetails) -> Frame:
    """Return a frame with what was recalled for a turn, and the phase of its answer."""
    html = render_to_string("chat/frames/answer_started.html", {"turn": turn_row(turn, details)})
    return Frame(turn.thread_id, html, turn.id, turn.revision)


def memory_searched(turn: Turn, details: TurnDetails, *, has_new: bool) -> Frame:
    """Return a frame with the searches of a running answer; `has_new`: with the passages found so far, too."""
    context = {"turn": turn_row(turn, details), "has_new": has_new}
    return Frame(turn.thread_id, render_to_string("chat/frames/memory_searched.html", context), turn.id, turn.revision)


def tools_used(turn: Turn) -> Frame:
    """Return a frame with the calls of tools of a running answer, and the questions about those that wait."""
    row = turn_row(turn, TurnDetails(), has_blocks=bool(turn.answer.strip()))
    html = render_to_string("chat/frames/tools_used.html", {"turn": row})
    return Frame(turn.thread_id, html, turn.id, turn.revision)


def answer_finished(
    turn: Turn,
    details: TurnDetails | None,
    active: ActiveTurn | None,
    *,
    has_blocks: bool,
    last_blocks: Sequence[str] = (),
    last_reasoning: str = "",
    summary: RecallSummaryRow | None = None,
    searches: MemorySearchesRow | None = None,
    documents: Sequence[Attachment] = (),
) -> tuple[Frame, Frame]:
    """Return a frame with the last reasoning and blocks of a finished answer, and a frame with its footer.

    The first one contains the button that sends or stops: the second is dropped if memory is finished first, and its
    footer has arrived.

    `details` are those of the footer; None if they have to be read. `active` is the turn that runs now, if any.
    `has_blocks`: the answer has any, published before or not. `summary` is that of what was recalled, None if nothing
    was, and `searches` are the model's. `documents` are the attachments whose documents are now on their way into memory.
    """
    row = turn_row(turn, details or read_footer_details(turn.thread, [turn])[turn.id], has_blocks=has_blocks)
    row = replace(row, searches=searches)
    reasoning = _reasoning(turn.id, last_reasoning) if last_reasoning else ""
    last = {
        "turn": row,
        "finished": mark_safe("".join(last_blocks)),
        "reasoning": mark_safe(reasoning),
        "summary": summary,
        "attachments": attachment_rows(documents, read_progress(documents)),
        "active": active,
    }
    end = Frame(turn.thread_id, render_to_string("chat/frames/answer_finished.html", last), turn.id, turn.revision)
    return end, _footer(turn, row)


def turn_footer(turn_id: uuid.UUID) -> Frame:
    """Return a frame with the footer of a finished turn, whose memory has changed."""
    turn = Turn.objects.select_related("author", "stopped_by", "thread__space").get(id=turn_id)
    return _footer(turn, turn_row(turn, read_footer_details(turn.thread, [turn])[turn.id]))


def _footer(turn: Turn, row: TurnRow) -> Frame:
    html = render_to_string("chat/frames/turn_footer.html", {"turn": row})
    return Frame(turn.thread_id, html, turn.id, turn.revision, is_footer=True)


def additions(turn: Turn) -> Frame:
    """Return a frame with which each page reads what was added to memory after the turn, as far as its reader may."""
    context = {"turn_id": turn.id, "additions": None, "oob": True}
    return Frame(turn.thread_id, render_to_string("chat/_additions.html", context))


def branch_switched(thread_id: uuid.UUID, removed_ids: Sequence[uuid.UUID], added_ids: Sequence[uuid.UUID]) -> Frame:
    """Return a frame that removes and appends the turns of a branch switch."""
    turns = list(
        Turn.objects.filter(id__in=added_ids)
        .with_addition_marks()
        .select_related("author", "stopped_by", "thread__space")
        .order_by("position")
    )
    rows = turn_rows(Thread.objects.select_related("space").get(id=thread_id), turns) if added_ids else []
    return Frame(thread_id, snapshot([], rows, removed_ids, _waiting(thread_id)))


def thread_list(person_id: uuid.UUID, open_id: uuid.UUID | None) -> str:
    """Return the HTML of a person's thread list and of the title of the open thread."""
    threads = sidebar.thread_list(person_id, open_id)
    title = next((link.title for group in threads.groups for link in group.threads if link.is_open), "")
    if open_id and not title:
        # It is archived, or older than the listed ones.
        title = access.readable_threads(person_id).filter(id=open_id).values_list("title", flat=True).first() or ""
    return render_to_string("chat/frames/thread_list.html", {"threads": threads, "title": title})


def thread_list_update(person_id: uuid.UUID, open_id: uuid.UUID | None, changes: ListChanges) -> str:
    """Return the HTML of the links that changed in a person's thread list, or of the whole list, and of new mentions."""
    mentions = [m for m in changes.links.values() if m.is_mention]
    notices = "".join(mention_notice(person_id, change.thread_id) for change in mentions)
    if not notices and any(change.is_mention_seen for change in changes.links.values()):
        context = {"count": count_unseen(person_id), "is_current": False, "oob": True}
        notices = render_to_string("components/_mentions_link.html", context)
    links = {} if changes.is_whole else sidebar.thread_links(person_id, open_id, changes.links)
    if links.keys() != changes.links.keys() or changes.is_whole:
        return thread_list(person_id, open_id) + notices
    rows = [
        {
            "thread": links[thread_id],
            # The page of a thread moves its own link: whether it is pinned is known there.
            "is_moved": change.is_latest and not links[thread_id].is_open and not links[thread_id].is_pinned,
            "is_latest": change.is_latest and links[thread_id].is_open,
        }
        for thread_id, change in changes.links.items()
    ]
    title = links[open_id].title if open_id in links else ""
    return render_to_string("chat/frames/thread_links.html", {"links": rows, "title": title}) + notices


def mention_notice(person_id: uuid.UUID, thread_id: uuid.UUID) -> str:
    """Return the HTML that tells a person about their latest unseen mention in the thread; "" if there is none."""
    turn = latest_unseen(person_id, thread_id)
    if turn is None:
        return ""
    context = {"turn": turn, "count": count_unseen(person_id)}
    return render_to_string("chat/frames/mention.html", context)


def presence(thread_ids: Iterable[uuid.UUID]) -> list[Frame]:
    """Return for each of these threads a frame with the people who have it open, or had it open."""
    return [
        Frame(thread.id, render_to_string("chat/frames/presence.html", {"visitors": visitors(thread)}))
        for thread in Thread.objects.select_related("space").filter(id__in=thread_ids)
    ]


def typing(thread_id: uuid.UUID, person_id: uuid.UUID, name: str) -> Frame:
    """Return a frame that says that this person is typing."""
    context = {"person_id": person_id, "name": name, "oob": True}
    return Frame(thread_id, render_to_string("chat/_typing.html", context))


def model_changed(thread_id: uuid.UUID, name: str) -> Frame:
    """Return a frame with the name of the thread's new model."""
    return Frame(thread_id, render_to_string("chat/_model_name.html", {"name": name, "oob": True}))


def snapshot(
    rows: Sequence[TurnRow],
    missing: Sequence[TurnRow],
    removed_ids: Sequence[uuid.UUID],
    waiting: Waiting,
) -> str:
    """Return HTML that removes turns, replaces changed ones and appends missing ones, in this order."""
    context = {"changed": rows, "missing": missing, "gone": removed_ids} | waiting._asdict()
    return render_to_string("chat/frames/snapshot.html", context)


def _whole(template: str, turn_id: uuid.UUID) -> Frame:
    turns = Turn.objects.with_attachment_marks().with_addition_marks()
    turn = turns.select_related("author", "stopped_by", "thread__space").get(id=turn_id)
    (row,) = turn_rows(turn.thread, [turn])
    html = render_to_string(template, {"turn": row} | _waiting(turn.thread_id)._asdict())
    return Frame(turn.thread_id, html, turn.id, turn.revision)


def _waiting(thread_id: uuid.UUID) -> Waiting:
    """Return the running turn of the thread and its queue."""
    turns = Turn.objects.filter(thread_id=thread_id, state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED])
    columns = ("id", "thread_id", "parent_id", "author__name", "state", "message")
    return Waiting.of(turns.select_related("author").only(*columns).order_by("position"))

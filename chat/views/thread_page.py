"""The page of a thread: its turns in a window, and what stands around them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from chat import access, commands
from chat.llm import endpoint
from chat.llm.choices import space_model
from chat.llm.model_list import MAX_NAME_LENGTH
from chat.models import Attachment, Thread, Turn
from chat.realtime.presence import Visitor, visitors
from chat.realtime.sync import MAX_MISSED, PAGE_SIZE
from chat.rows.additions import addition_rows
from chat.rows.attachments import composer_chips
from chat.rows.news import find_news
from chat.rows.permissions import rows_for_reader
from chat.rows.queue import queue_for_reader, queue_rows
from chat.rows.recall_filter import RecallFilterRow, recall_filter_row, recall_filter_row_of_new_thread
from chat.rows.receipts import receipts_at_turns
from chat.rows.thread import ThreadRow, thread_row
from chat.rows.thread_tools import ThreadToolsRow, new_thread_tools_row, thread_tools_row
from chat.rows.turns import ActiveTurn, turn_rows
from chat.rows.usage import LimitRow, usage_notice
from chat.rows.voice import voice_row
from chat.rows.web_search import web_switch_row
from chat.usage.limits import has_limits
from chat.views.recall_filter import parse_filter_of_new_thread
from chat.views.tools import parse_server_ids
from memory.api import (
    InvalidInputError,
    PageRequest,
    clean_text,
    parse_uuid,
    readable_space_ids,
    space_choices,
    upload_limits,
)


def composer_context(text: str = "", error: str = "", attachments: Sequence[Attachment] = ()) -> dict[str, object]:
    """Return what the composer shows: a text, an error at it, and attachments."""
    return {
        "text": text,
        "error": error,
        "client_key": uuid.uuid4(),
        "chips": composer_chips(attachments),
    }


def _sent(request: PageRequest) -> QueryDict:
    """Return the form that was sent, or else the parameters of the address."""
    return request.POST if request.method == "POST" else request.GET


def _recall_filter_row(request: PageRequest, thread: Thread | None, roles: frozenset[str]) -> RecallFilterRow:
    if thread is not None:
        return recall_filter_row(thread, request.user.pk, can_change=bool(roles))
    try:
        recall_filter = parse_filter_of_new_thread(_sent(request), request.user.pk)
    except InvalidInputError as error:
        messages.error(request, str(error))
        return RecallFilterRow()
    return recall_filter_row_of_new_thread(recall_filter, request.user.pk)


def _tools_row(request: PageRequest, thread: Thread | None, roles: frozenset[str]) -> ThreadToolsRow:
    if thread is not None:
        return thread_tools_row(thread, can_change=bool(roles))
    return new_thread_tools_row(parse_server_ids(_sent(request).getlist("tools")), request.GET)


def _window(
    thread: Thread, person_id: uuid.UUID, start: int | None, until: int | None
) -> tuple[list[Turn], int | None]:
    """Return the turns to show, and the position of the next page (None: these are the latest).

    The latest are a page, or more if it begins with a turn that this person has not read. From `start` on, all turns are
    shown if they are at most MAX_MISSED, so that the page is live.
    """
    turns = (
        thread.turns.active_branch()
        .with_attachment_marks()
        .with_addition_marks()
        .select_related("author", "stopped_by")
    )
    if start is None:
        latest = list(turns.order_by("-position")[:PAGE_SIZE])[::-1]
        if len(latest) == PAGE_SIZE and find_news(thread, latest[:1], person_id):
            latest = list(turns.order_by("-position")[:MAX_MISSED])[::-1]
        return latest, None
    if until is not None:
        return list(turns.filter(position__gte=start, position__lt=until).order_by("position")[:PAGE_SIZE]), until
    page = list(turns.filter(position__gte=start).order_by("position")[: MAX_MISSED + 1])
    return (page, None) if len(page) <= MAX_MISSED else (page[:PAGE_SIZE], page[PAGE_SIZE].position)


def _previous_page(thread: Thread, first: Turn) -> int | None:
    """Return the position of the page before `first`; None if `first` is the first turn of the active branch."""
    if first.position == 0:
        return None
    earlier = thread.turns.active_branch().filter(position__lt=first.position).order_by("-position")
    positions = list(earlier.values_list("position", flat=True)[:PAGE_SIZE])
    return positions[-1] if positions else None


def _thread_row(request: PageRequest, thread: Thread | None, roles: frozenset[str]) -> ThreadRow:
    current = endpoint.of_request(request)
    chosen = thread.model if thread else _chosen_model(request) or _default_model(request)
    return thread_row(
        thread,
        roles=roles,
        model_name=_("No model connected") if current is None else current.displayed_model(chosen),
        model_url=_model_url(request, thread) if roles and current is not None else "",
        is_dummy=current is None,
    )


def _chosen_model(request: PageRequest) -> str:
    """Return the model that was chosen for a new thread, on a page without script or before its message was refused."""
    return clean_text(_sent(request).get("model", "")).strip()[:MAX_NAME_LENGTH]


def _default_model(request: PageRequest) -> str:
    """Return the model of a new thread for which none is chosen: that of the space in the URL, or else the person's."""
    space_id = parse_uuid(request.GET.get("space", ""))
    is_readable = space_id is not None and space_id in readable_space_ids(request.user.pk)
    return (space_model(space_id) if space_id and is_readable else "") or request.user.default_model


def _model_url(request: PageRequest, thread: Thread | None) -> str:
    """Return the URL of the model picker, which keeps what the URL of a new thread says."""
    if thread is not None:
        return reverse("thread_model", args=[thread.id])
    return reverse("new_thread_model", query=request.GET)


def _visitors(request: PageRequest, thread: Thread | None) -> Sequence[Visitor]:
    """Return who else has the thread open, or had; nobody else reads a thread of a personal space."""
    if thread is None or thread.space.owner_id is not None or not request.user.shows_presence:
        return ()
    return visitors(thread)


def _usage_notice(request: PageRequest, thread: Thread | None) -> LimitRow | None:
    """Return the monthly limit that is near or reached; of a new thread without limits with one query."""
    if thread is not None and not has_limits(thread):
        return None
    return usage_notice(request.user.pk, thread.space if thread else None)


def thread_page(
    request: PageRequest,
    thread: Thread | None,
    *,
    error: str = "",
    text: str = "",
    attachments: Sequence[Attachment] = (),
    card: commands.CommandResult | None = None,
    start: int | None = None,
    until: int | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page of a thread, or of a new one, with this text, these attachments and this card of a command."""
    turns, later = _window(thread, request.user.pk, start, until) if thread else ([], None)
    rows = turn_rows(thread, turns) if thread else []
    roles = access.roles_in_thread(request.user.pk, thread) if thread else frozenset({"owner"})
    row = _thread_row(request, thread, roles)
    erased = [turn_row.id for turn_row in rows if turn_row.is_text_deleted]
    receipts = receipts_at_turns(request.user.pk, erased, shown_id=parse_uuid(request.GET.get("receipt", "")))
    with_additions = [turn_row.id for turn_row in rows if turn_row.additions is None]
    additions = addition_rows(with_additions, person_id=request.user.pk, is_administrator=request.user.is_administrator)
    rows = [
        replace(turn_row, receipt=receipts.get(turn_row.id), additions=additions.get(turn_row.id, ()))
        for turn_row in rows
    ]
    everywhere = frozenset({"administrator"}) if request.user.is_administrator else frozenset()
    context = {
        "section": "thread" if thread else "new",
        # Only the latest turns are updated live, because new turns are appended to the page.
        "thread": replace(row, socket_url="") if later is not None else row,
        "earlier": _previous_page(thread, turns[0]) if thread and turns else None,
        "turns_from": turns[0].position if turns else None,
        "later": later,
        "turns": rows_for_reader(rows, request.user.pk, roles | everywhere),
        "active": next((ActiveTurn.of(turn) for turn in turns if turn.is_running), None),
        "queue": queue_for_reader(queue_rows(turns), request.user.pk),
        "composer": composer_context(text, error, attachments),
        "usage_notice": _usage_notice(request, thread),
        "max_attachments": settings.CATO.chat.max_attachments,
        "card": card,
        "upload_limits": upload_limits(),
        "chosen_model": "" if thread else _chosen_model(request),
        "recall_filter": _recall_filter_row(request, thread, roles),
        "tools": _tools_row(request, thread, roles),
        "web_switch": web_switch_row(
            thread, can_change=bool(roles), is_chosen=_sent(request).get("web_search") == "yes"
        ),
        "commands": commands.for_roles(roles | everywhere),
        "visitors": _visitors(request, thread),
        "news": find_news(thread, turns, request.user.pk) if thread and later is None else None,
        "voice": voice_row(),
        "places": [] if thread else space_choices(request.user.pk),
        "chosen_space": request.POST.get("space", request.GET.get("space", "")),
    }
    return render(request, "chat/thread.html", context, status=status)

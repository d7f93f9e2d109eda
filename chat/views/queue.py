"""Actions on queued messages: withdraw, edit, move up."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from chat import access, services
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.rows.attachments import composer_chips
from chat.views.thread_page import thread_page
from memory.api import PageRequest


@require_POST
def withdraw(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Withdraw a queued message."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    services.withdraw_message(turn, by=request.user.pk)
    publish(frames.branch_switched(thread_id, [turn_id], []))
    return HttpResponse(status=204) if request.htmx else redirect("thread", thread_id)


@require_POST
def edit(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Withdraw a queued message to edit it: its text and its files are put back into the composer."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    attachments = services.withdraw_to_edit(turn, by=request.user.pk)
    publish(frames.branch_switched(thread_id, [turn_id], []))
    if request.htmx:
        return render(request, "chat/_attachment_chips.html", {"chips": composer_chips(attachments)})
    thread = access.get_marked_thread(request.user.pk, thread_id)
    return thread_page(request, thread, text=turn.message, attachments=attachments)


@require_POST
def move_up(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Have a queued message answered before the one directly before it."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    moved_ids = services.move_up(turn, by=request.user.pk)
    publish(frames.branch_switched(thread_id, moved_ids, moved_ids))
    return HttpResponse(status=204) if request.htmx else redirect("thread", thread_id)

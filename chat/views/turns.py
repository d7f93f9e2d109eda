"""Actions on turns: stop, fork, retry, resume, edit, regenerate, switch; and what was recalled for them."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, services
from chat.answers import runner
from chat.errors import ConflictError, UsageLimitError
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.rows.additions import addition_rows
from chat.rows.personal_recall import personal_rows
from chat.services import BranchSwitch
from chat.views.exchanges import turn_url
from chat.views.form_parsing import parse_client_key
from memory import api as memory
from memory.api import (
    EmbeddingJob,
    InvalidInputError,
    PageRequest,
    RateLimitedError,
    clean_text,
    count_message,
    excerpt,
)


@require_POST
def stop(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Stop an answer, for any reader of its thread."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    runner.stop(turn, by=request.user.pk)
    return _redirect_to_turn(request, turn)


@require_POST
def fork(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Fork the thread at this turn."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    forked = services.fork_thread(turn, person_id=request.user.pk)
    messages.success(request, _("Forked. The original thread is unchanged."))
    return redirect("thread", forked.id)


@require_POST
def retry(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Restart an answer from the beginning."""
    return _restart(request, access.turn_to_change(request.user.pk, thread_id, turn_id), services.retry_turn)


@require_POST
def resume(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Continue an answer from its partial text."""
    return _restart(request, access.turn_to_change(request.user.pk, thread_id, turn_id), services.resume_turn)


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Show the message to be edited; POST creates a turn with the new message."""
    turn = access.turn_to_change(request.user.pk, thread_id, turn_id)
    context = {"section": "thread", "turn": turn, "text": turn.message, "client_key": uuid.uuid4()}
    if request.method == "GET":
        return render(request, "chat/edit.html", context)
    text = clean_text(request.POST.get("message", ""))
    try:
        count_message(request.user.pk)
        switched = services.edit_message(
            turn, person_id=request.user.pk, message=text, client_key=parse_client_key(request), is_typed=True
        )
    except (InvalidInputError, ConflictError, RateLimitedError, UsageLimitError) as error:
        return render(request, "chat/edit.html", context | {"text": text, "error": str(error)}, status=422)
    return _publish_switch(request, switched)


@require_POST
def regenerate(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Regenerate the answer."""
    turn = access.turn_to_change(request.user.pk, thread_id, turn_id)
    count_message(request.user.pk)
    return _publish_switch(request, services.regenerate(turn, person_id=request.user.pk, client_key=uuid.uuid4()))


@require_POST
def switch_branch(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Switch to the branch of this turn."""
    turn = access.turn_to_change(request.user.pk, thread_id, turn_id)
    return _publish_switch(request, services.switch_branch(turn, person_id=request.user.pk))


@require_POST
def retry_indexing(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Retry a failed embedding job."""
    turn = access.get_turn(request.user.pk, thread_id, turn_id)
    if turn.exchange_id is not None:
        memory.retry_failed(EmbeddingJob.objects.filter(exchange_id=turn.exchange_id))
    return _redirect_to_turn(request, turn)


@require_GET
def additions(request: PageRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Return what was added to memory with commands after a turn, as far as this person may read it."""
    turn = access.turn_by_id(request.user.pk, turn_id)
    rows = addition_rows([turn.id], person_id=request.user.pk, is_administrator=request.user.is_administrator)
    context = {"turn_id": turn.id, "additions": rows.get(turn.id, ()), "oob": ""}
    return render(request, "chat/_additions.html", context)


@require_GET
def recalled_exchanges(request: PageRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Show the recalled exchanges of a turn; for htmx return only the actions of this person for each of them.

    The panel is rendered once for all readers of the thread, so a person's actions are loaded when it is opened.
    """
    turn = access.turn_by_id(request.user.pk, turn_id)
    items = personal_rows(turn, request.user.pk, is_administrator=request.user.is_administrator)
    unindexed = memory.count_unindexed(memory.space_ids_shared_by_all_readers(turn.thread.space_id))
    if request.htmx:
        context = {"items": items, "turn_id": turn.id, "unindexed": unindexed}
        return render(request, "chat/_recall_actions_oob.html", context)
    context = {
        "unindexed": unindexed,
        "section": "thread",
        "turn_id": turn.id,
        "asker_id": turn.author_id,
        "message": excerpt(turn.message),
        "items": items,
        "back_url": f"{reverse('thread', args=[turn.thread_id])}#turn-{turn.id}",
    }
    return render(request, "chat/recall.html", context)


def _restart(request: PageRequest, turn: Turn, service: Callable[..., Turn]) -> HttpResponse:
    count_message(request.user.pk)
    restarted = service(turn, by=request.user.pk)
    publish(frames.turn(restarted.id))
    runner.start_answer(restarted.id)
    return _redirect_to_turn(request, turn)


def _publish_switch(request: PageRequest, switched: BranchSwitch) -> HttpResponse:
    runner.publish_and_start(switched.posted, removed_ids=switched.removed_ids, added_ids=switched.added_ids)
    return _redirect_to_turn(request, switched.posted.turn)


def _redirect_to_turn(request: PageRequest, turn: Turn) -> HttpResponse:
    if request.htmx:
        return HttpResponse(status=204)
    return redirect(turn_url(turn))

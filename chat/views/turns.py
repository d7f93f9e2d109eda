"""What can be done with a turn: stop it, have it answered again, go on from where it was."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from chat import access, frames, replies, services
from chat.broadcast import announce
from chat.errors import Refused
from chat.models import Turn
from chat.throttle import may_say
from memory import services as memory
from memory.models import Embedding
from memory.requests import PageRequest


@require_POST
def stop(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    turn = access.turn_for(request.user.pk, thread_id, turn_id)
    if services.stop(turn):
        replies.ask_to_stop(turn.id)
    if turn.state == Turn.State.QUEUED:
        announce(frames.turn(turn.id))
    return _back(request, turn)


@require_POST
def retry(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    return _again(request, access.turn_for(request.user.pk, thread_id, turn_id), services.retry)


@require_POST
def resume(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    return _again(request, access.turn_for(request.user.pk, thread_id, turn_id), services.resume)


@require_POST
def remember_again(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Try once more to embed what could not be."""
    turn = access.turn_for(request.user.pk, thread_id, turn_id)
    if turn.exchange_id is not None:
        memory.retry_failed(Embedding.objects.filter(exchange_id=turn.exchange_id))
    return _back(request, turn)


def _again(request: PageRequest, turn: Turn, verb: Callable[[Turn], Turn]) -> HttpResponse:
    try:
        may_say(request.user.pk)
        begun = verb(turn)
    except Refused as refusal:
        return HttpResponse(str(refusal), status=409, content_type="text/plain")
    announce(frames.turn(begun.id))
    replies.start(begun.id)
    return _back(request, turn)


def _back(request: PageRequest, turn: Turn) -> HttpResponse:
    if request.htmx:
        return HttpResponse(status=204)
    return redirect("thread", thread_id=turn.thread_id)

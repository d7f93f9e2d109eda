"""Where a thread lives: the spaces it may move to, each with what that means, and the move."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat import access, services
from chat.errors import Refused
from chat.rows import space_name
from chat.views.sent import sent_space
from memory import spaces
from memory.requests import PageRequest


@dataclass(frozen=True, slots=True)
class PlaceRow:
    id: uuid.UUID
    name: str
    kind: str
    readers: int
    is_here: bool


def places_for(person_id: uuid.UUID, here: uuid.UUID | None = None) -> list[PlaceRow]:
    """The spaces in which this person's threads may live; `here` is where this one does."""
    people = get_user_model().objects.filter(is_active=True)
    return [
        PlaceRow(space.id, space_name(space), space.kind, spaces.readers(space, people).count(), space.id == here)
        for space in spaces.all_readable(person_id)
    ]


@require_http_methods(["GET", "POST"])
def move(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Ask where to, saying what it means; by POST the thread moves."""
    thread = access.own_thread_for(request.user.pk, thread_id)
    if request.method == "GET":
        places = places_for(request.user.pk, thread.space_id)
        return render(request, "chat/move.html", {"section": "thread", "thread": thread, "places": places})
    try:
        to = sent_space(request)
        if to is None:
            raise Refused("Choose where the thread is to live.")
        services.move(thread, to=to)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Moved. {_audience(places_for(request.user.pk, to.id))}")
    return redirect("thread", thread_id)


def _audience(places: list[PlaceRow]) -> str:
    here = next(place for place in places if place.is_here)
    return "Only you read it now." if here.kind == "own" else f"{here.readers} people read it now."

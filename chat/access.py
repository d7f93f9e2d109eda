"""The one door to each object of a conversation: it gives it, or raises NotFound."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session as SignIn
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.errors import NotFound
from chat.models import Image, Thread, Turn
from memory import spaces


class Seat(NamedTuple):
    """Somebody who listens, most often to a thread: who, by which sign-in, since which epoch of their account."""

    person_id: uuid.UUID
    sign_in: str
    epoch: int
    thread_id: uuid.UUID | None


def threads_of(person_id: uuid.UUID) -> QuerySet[Thread]:
    """Every thread this person may read."""
    return Thread.objects.filter(space_id__in=list(spaces.readable_by(person_id)), deleted_at=None)


def thread_for(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread, if this person may read it."""
    thread = threads_of(person_id).select_related("space", "owner").filter(id=thread_id).first()
    if thread is None:
        raise NotFound
    return thread


def turn_for(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """The turn of that thread, if this person may read the thread."""
    turn = thread_for(person_id, thread_id).turns.select_related("author", "thread__space").filter(id=turn_id).first()
    if turn is None:
        raise NotFound
    return turn


def own_thread_for(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread, if it is this person's to change."""
    thread = thread_for(person_id, thread_id)
    if thread.owner_id != person_id:
        raise NotFound
    return thread


def deleted_thread_for(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread that this person deleted and may still take back."""
    theirs = Thread.objects.filter(owner_id=person_id, space_id__in=list(spaces.readable_by(person_id)))
    thread = theirs.filter(id=thread_id).exclude(deleted_at=None).first()
    if thread is None:
        raise NotFound
    return thread


def image_for(person_id: uuid.UUID, image_id: uuid.UUID) -> Image:
    """The picture, if a thread this person may read shows it, or it is theirs and about to be sent."""
    shown = Q(turns__thread__in=threads_of(person_id)) | Q(turns=None, owner_id=person_id)
    image = Image.objects.filter(shown, id=image_id).first()
    if image is None:
        raise NotFound
    return image


def still_allowed(seats: Iterable[Seat]) -> set[Seat]:
    """Those of `seats` who are still signed in, active, in the same epoch, and readers of their thread, if any."""
    seats = set(seats)
    epochs = dict(
        get_user_model()
        .objects.filter(id__in={seat.person_id for seat in seats}, is_active=True)
        .values_list("id", "epoch")
    )
    sign_ins = set(
        SignIn.objects.filter(
            session_key__in={seat.sign_in for seat in seats}, expire_date__gt=timezone.now()
        ).values_list("session_key", flat=True)
    )
    threads = {seat.thread_id for seat in seats if seat.thread_id}
    there = Thread.objects.filter(id__in=threads, deleted_at=None)
    thread_spaces = dict(there.values_list("id", "space_id"))
    readable = {person_id: spaces.readable_by(person_id) for person_id in epochs}
    return {
        seat
        for seat in seats
        if epochs.get(seat.person_id) == seat.epoch
        and seat.sign_in in sign_ins
        and (seat.thread_id is None or thread_spaces.get(seat.thread_id) in readable[seat.person_id])
    }

"""The one door to each object of a conversation: it gives it, or raises NotFoundError."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session as SignIn
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import PermissionDeniedError
from chat.models import Image, Thread, Turn
from memory.errors import NotFoundError
from memory.spaces import access


class SocketIdentity(NamedTuple):
    """Somebody who listens, most often to a thread: who, by which sign-in, since which epoch of their account."""

    person_id: uuid.UUID
    sign_in: str
    epoch: int
    thread_id: uuid.UUID | None


def readable_threads(person_id: uuid.UUID) -> QuerySet[Thread]:
    """Every thread this person may read."""
    return Thread.objects.filter(space_id__in=list(access.readable_space_ids(person_id)), deleted_at=None)


def get_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread, if this person may read it."""
    thread = readable_threads(person_id).select_related("space", "owner").filter(id=thread_id).first()
    if thread is None:
        raise NotFoundError
    return thread


def get_turn(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """The turn of that thread, if this person may read the thread."""
    turn = get_thread(person_id, thread_id).turns.select_related("author", "thread__space").filter(id=turn_id).first()
    if turn is None:
        raise NotFoundError
    return turn


def turn_by_id(person_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """The turn, if this person may read its thread."""
    thread_id = Turn.objects.filter(id=turn_id).values_list("thread_id", flat=True).first()
    if thread_id is None:
        raise NotFoundError
    return get_turn(person_id, thread_id, turn_id)


def turn_to_change(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> Turn:
    """The turn of that thread, if this person may edit, regenerate, retry or resume it, or switch its version.

    These are for the author of the message and the owner of the thread, since they hide what was there from memory.
    Raises NotFoundError, and PermissionDeniedError for other readers.
    """
    turn = get_turn(person_id, thread_id, turn_id)
    if person_id not in (turn.author_id, turn.thread.owner_id):
        raise PermissionDeniedError(
            _("Only the author of this message or the owner of the thread can do this. You can fork the thread.")
        )
    return turn


def get_owned_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread, if it is this person's to change."""
    thread = get_thread(person_id, thread_id)
    if thread.owner_id != person_id:
        raise NotFoundError
    return thread


def can_configure(person_id: uuid.UUID, thread: Thread) -> bool:
    """Return whether this person sets the thread's model and recall filter: its owner and the managers of its space."""
    return thread.owner_id == person_id or access.manages_space(person_id, thread.space)


def thread_to_configure(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """Return the thread whose model and recall filter this person may set. Raises NotFoundError, PermissionDeniedError."""
    thread = get_thread(person_id, thread_id)
    if not can_configure(person_id, thread):
        raise PermissionDeniedError(
            _("Only the owner of this thread and the managers of its space change this. Fork the thread to change it.")
        )
    return thread


def get_deleted_thread(person_id: uuid.UUID, thread_id: uuid.UUID) -> Thread:
    """The thread that this person deleted and may still take back."""
    theirs = Thread.objects.filter(owner_id=person_id, space_id__in=list(access.readable_space_ids(person_id)))
    thread = theirs.filter(id=thread_id).exclude(deleted_at=None).first()
    if thread is None:
        raise NotFoundError
    return thread


def get_image(person_id: uuid.UUID, image_id: uuid.UUID) -> Image:
    """The picture, if a thread this person may read shows it, or it is theirs and about to be sent."""
    shown = Q(turns__thread__in=readable_threads(person_id)) | Q(turns=None, owner_id=person_id)
    image = Image.objects.filter(shown, id=image_id).first()
    if image is None:
        raise NotFoundError
    return image


def may_receive(person_id: uuid.UUID, thread_id: uuid.UUID, api_token_id: uuid.UUID | None = None) -> bool:
    """Return whether this active person may read the thread now, with an API token that is still valid, if any."""
    return not _without_access([(thread_id, person_id, thread_id, api_token_id)])


def turns_without_access(turn_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of the turns whose author may no longer read the thread, or whose API token is no longer valid."""
    rows = Turn.objects.filter(id__in=list(turn_ids)).values_list("id", "author_id", "thread_id", "api_token_id")
    return _without_access(rows)


def _without_access(
    asked: Iterable[tuple[uuid.UUID, uuid.UUID, uuid.UUID, uuid.UUID | None]],
) -> set[uuid.UUID]:
    """Return the keys whose person has no access to the thread, of (key, person, thread, API token or None)."""
    asked = list(asked)
    people = {person_id for _key, person_id, _thread_id, _token_id in asked}
    active = get_user_model().objects.filter(id__in=people, is_active=True).values_list("id", flat=True)
    readable = {person_id: access.readable_space_ids(person_id) for person_id in active}
    threads = {thread_id for _key, _person_id, thread_id, _token_id in asked}
    thread_spaces = dict(Thread.objects.filter(id__in=threads, deleted_at=None).values_list("id", "space_id"))
    tokens = {token_id for _key, _person_id, _thread_id, token_id in asked if token_id}
    valid = apps.get_model(settings.API_TOKEN_MODEL).objects.valid() if tokens else None
    valid_tokens = set(valid.filter(pk__in=tokens).values_list("pk", flat=True)) if valid is not None else set()
    return {
        key
        for key, person_id, thread_id, token_id in asked
        if thread_spaces.get(thread_id) not in readable.get(person_id, ())
        or (token_id is not None and token_id not in valid_tokens)
    }


def authorize_sockets(seats: Iterable[SocketIdentity]) -> set[SocketIdentity]:
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
    readable = {person_id: access.readable_space_ids(person_id) for person_id in epochs}
    return {
        seat
        for seat in seats
        if epochs.get(seat.person_id) == seat.epoch
        and seat.sign_in in sign_ins
        and (seat.thread_id is None or thread_spaces.get(seat.thread_id) in readable[seat.person_id])
    }

"""Notifies open pages that their thread list has changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.db import transaction

from chat.models import Thread
from chat.realtime.hub import notify_users
from chat.realtime.messages import LinkState, ListChange
from memory import api as memory
from memory.api import Space


def notify_thread_changed(thread_id: uuid.UUID) -> None:
    """Notify everyone who can read this thread, after the commit, that it may be elsewhere in the list or not at all."""
    transaction.on_commit(lambda: _notify_readers(thread_id))


def notify_link_changed(thread: Thread, *, is_answering: bool | None = None, is_latest: bool = False) -> None:
    """Notify everyone who can read this thread (loaded with its space), after the commit, that its link has changed.

    `is_answering`: whether an answer is running in it, None if that is not known. `is_latest`: a message was posted.
    """
    state = None if is_answering is None else _state_of(thread, is_answering)
    change, space = ListChange(thread.id, is_latest, state), thread.space
    transaction.on_commit(lambda: notify_users(_readers_of_link(space), change))


def notify_after_commit(people: Iterable[uuid.UUID], change: ListChange | None = None) -> None:
    """Notify these people after the commit."""
    ids = list(people)
    transaction.on_commit(lambda: notify_users(ids, change))


def _readers_of_link(space: Space) -> list[uuid.UUID]:
    """Return the readers of a link in `space`, without a query for a personal space.

    Its owner wrote the message while signed in, and the pages of a deactivated account are closed within three seconds.
    """
    return active_readers(space) if space.owner_id is None else [space.owner_id]


def _state_of(thread: Thread, is_answering: bool) -> LinkState:
    return LinkState(
        title=thread.title,
        is_answering=is_answering,
        is_remembered=thread.is_remembered,
        space_kind=thread.space.kind,
        space_name=thread.space.display_name,
    )


def _notify_readers(thread_id: uuid.UUID) -> None:
    thread = Thread.objects.select_related("space").filter(id=thread_id).first()
    if thread is not None:
        notify_users(active_readers(thread.space))


def active_readers(space: Space) -> list[uuid.UUID]:
    """Return the ids of the active people who can read `space`."""
    active = get_user_model().objects.filter(is_active=True)
    return list(memory.readers(space, active).values_list("id", flat=True))

"""Notifies open pages that their thread list has changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.db import transaction

from chat.models import Thread
from chat.realtime.hub import notify_users
from memory import api as memory
from memory.api import Space


def notify_thread_changed(thread_id: uuid.UUID) -> None:
    """Notify everyone who can read this thread, after the commit."""
    transaction.on_commit(lambda: _notify_readers(thread_id))


def notify_after_commit(people: Iterable[uuid.UUID]) -> None:
    """Notify these people after the commit."""
    ids = list(people)
    transaction.on_commit(lambda: notify_users(ids))


def _notify_readers(thread_id: uuid.UUID) -> None:
    thread = Thread.objects.select_related("space").filter(id=thread_id).first()
    if thread is not None:
        notify_users(active_readers(thread.space))


def active_readers(space: Space) -> list[uuid.UUID]:
    """Return the ids of the active people who can read `space`."""
    active = get_user_model().objects.filter(is_active=True)
    return list(memory.readers(space, active).values_list("id", flat=True))

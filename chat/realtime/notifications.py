"""Tells people's open pages that their list of threads is not what it was."""

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
    """After the commit, everyone who reads this thread has their list drawn anew."""
    transaction.on_commit(lambda: _tell_readers(thread_id))


def notify_after_commit(people: Iterable[uuid.UUID]) -> None:
    """After the commit, these people have their list drawn anew."""
    ids = list(people)
    transaction.on_commit(lambda: notify_users(ids))


def _tell_readers(thread_id: uuid.UUID) -> None:
    thread = Thread.objects.select_related("space").filter(id=thread_id).first()
    if thread is not None:
        notify_users(active_readers(thread.space))


def active_readers(space: Space) -> list[uuid.UUID]:
    """Everybody with an open account who reads `space`."""
    active = get_user_model().objects.filter(is_active=True)
    return list(memory.readers(space, active).values_list("id", flat=True))

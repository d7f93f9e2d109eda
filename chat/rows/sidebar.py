"""Template rows of the thread list."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat import access
from chat.models import Thread, Turn
from chat.threads.read_markers import unread_thread_ids
from memory import api as memory
from memory.api import SpaceIds

_MAX_THREADS = 60


@dataclass(frozen=True, slots=True)
class ThreadLink:
    """A thread in the list."""

    id: uuid.UUID
    title: str
    url: str
    is_open: bool
    is_answering: bool
    is_unread: bool
    is_remembered: bool
    space_kind: str
    space_name: str


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """The pinned threads, or the threads of a period."""

    label: str
    threads: list[ThreadLink]


def thread_groups(person_id: uuid.UUID, open_id: uuid.UUID | None) -> list[ThreadGroup]:
    """Return the threads this person reads, pinned ones first, then by age; `open_id` is the one that is open."""
    unarchived = access.readable_threads(person_id).filter(archived_at=None).select_related("space")
    pinned = unarchived.filter(pinned_at__isnull=False).order_by("-pinned_at")[:_MAX_THREADS]
    rows = [*pinned, *_newest(unarchived.filter(pinned_at=None), memory.readable_space_ids(person_id))]
    answering_ids = set(
        Turn.objects.filter(thread__in=[t.id for t in rows], state__in=Turn.RUNNING_STATES).values_list(
            "thread_id", flat=True
        )
    )
    unread = unread_thread_ids(person_id, rows)
    groups: dict[str, list[ThreadLink]] = {}
    for thread in rows:
        link = ThreadLink(
            id=thread.id,
            title=thread.title,
            url=reverse("thread", args=[thread.id]),
            is_open=thread.id == open_id,
            is_answering=thread.id in answering_ids,
            is_unread=thread.id in unread and thread.id != open_id,
            is_remembered=thread.is_remembered,
            space_kind=thread.space.kind,
            space_name=thread.space.display_name,
        )
        groups.setdefault(_("Pinned") if thread.pinned_at else _age(thread.last_message_at), []).append(link)
    return [ThreadGroup(label, links) for label, links in groups.items()]


def _newest(threads: QuerySet[Thread], readable: SpaceIds) -> QuerySet[Thread]:
    """Return the newest threads of all spaces, from the newest of each space, which an index has in order."""
    newest_by_space = (
        threads.filter(space_id=space_id)
        .order_by("-last_message_at")
        .values_list("last_message_at", "pk")[:_MAX_THREADS]
        for space_id in readable
    )
    newest = sorted(chain.from_iterable(newest_by_space), reverse=True)[:_MAX_THREADS]
    # By id only: with a space condition, SQLite scans the whole spaces.
    rows = Thread.objects.select_related("space").filter(pk__in=[pk for _last_message_at, pk in newest])
    return rows.order_by("-last_message_at")


def _age(last_message_at: datetime) -> str:
    now = timezone.localtime()
    then = timezone.localtime(last_message_at)
    days = (now.date() - then.date()).days
    if days <= 0:
        return _("Today")
    if days == 1:
        return _("Yesterday")
    if days < 7:
        return _("This week")
    return date_format(then, "F" if then.year == now.year else "F Y")

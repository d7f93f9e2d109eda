"""Template rows of the thread list."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.models import Thread, Turn
from chat.realtime.messages import LinkState, ListChange
from chat.threads.read_markers import is_unread, with_read_times
from memory import api as memory

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
    is_pinned: bool
    space_kind: str
    space_name: str


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """The pinned threads, or the threads of a period."""

    label: str
    threads: list[ThreadLink]
    is_today: bool


def thread_groups(person_id: uuid.UUID, open_id: uuid.UUID | None) -> list[ThreadGroup]:
    """Return the threads this person reads, pinned ones first, then by age; `open_id` is the one that is open.

    The group of today comes always, even if it is empty, because the links of new threads are put there.
    """
    # By id only: with a space condition, SQLite scans the whole spaces.
    rows = list(_with_marks(Thread.objects.filter(pk__in=_listed_ids(person_id)), person_id))
    pinned = sorted((t for t in rows if t.pinned_at), key=lambda t: t.pinned_at or t.created_at, reverse=True)
    latest = sorted((t for t in rows if not t.pinned_at), key=lambda t: t.last_message_at, reverse=True)
    groups: dict[str, list[ThreadLink]] = {_("Pinned"): []} if pinned else {}
    groups[_("Today")] = []
    for thread in [*pinned, *latest]:
        label = _("Pinned") if thread.pinned_at else _age(thread.last_message_at)
        groups.setdefault(label, []).append(_link(thread, person_id, open_id))
    return [ThreadGroup(label, links, is_today=label == _("Today")) for label, links in groups.items()]


def thread_links(
    person_id: uuid.UUID, open_id: uuid.UUID | None, changes: Mapping[uuid.UUID, ListChange]
) -> dict[uuid.UUID, ThreadLink]:
    """Return the links of those of the changed threads that are in this person's list, by thread."""
    links = {id: _link_of_open(id, change.state) for id, change in changes.items() if id == open_id and change.state}
    if other_ids := changes.keys() - links.keys():
        readable = Thread.objects.filter(
            pk__in=other_ids, deleted_at=None, archived_at=None, space__in=memory.readable_spaces(person_id)
        )
        links |= {thread.id: _link(thread, person_id, open_id) for thread in _with_marks(readable, person_id)}
    return links


def _link_of_open(thread_id: uuid.UUID, state: LinkState) -> ThreadLink:
    """Return the link of the thread that is open, which is never unread."""
    url = reverse("thread", args=[thread_id])
    return ThreadLink(**asdict(state), id=thread_id, url=url, is_open=True, is_unread=False)


def _with_marks(threads: QuerySet[Thread], person_id: uuid.UUID) -> QuerySet[Any]:
    running = Turn.objects.filter(thread=OuterRef("pk"), state__in=Turn.RUNNING_STATES)
    marked: QuerySet[Any] = threads.select_related("space").annotate(has_running_answer=Exists(running))
    return with_read_times(marked, person_id)


def _link(thread: Any, person_id: uuid.UUID, open_id: uuid.UUID | None) -> ThreadLink:
    return ThreadLink(
        id=thread.id,
        title=thread.title,
        url=reverse("thread", args=[thread.id]),
        is_open=thread.id == open_id,
        is_answering=thread.has_running_answer,
        is_unread=thread.id != open_id and is_unread(thread, person_id),
        is_remembered=thread.is_remembered,
        is_pinned=thread.pinned_at is not None,
        space_kind=thread.space.kind,
        space_name=thread.space.display_name,
    )


def _listed_ids(person_id: uuid.UUID) -> list[uuid.UUID]:
    """Return the ids of the pinned threads, and of the newest ones of all spaces.

    They are chosen from the newest of each space, which an index has in order.
    """
    spaces = memory.readable_space_ids(person_id)
    unarchived = Thread.objects.filter(deleted_at=None, archived_at=None)
    parts = [
        unarchived.filter(space_id__in=list(spaces), pinned_at__isnull=False).order_by("-pinned_at"),
        *(unarchived.filter(space_id=id, pinned_at=None).order_by("-last_message_at") for id in spaces),
    ]
    # SQLite has no limit within a union, but within a subquery.
    first, *others = (
        Thread.objects.filter(pk__in=part.values("pk")[:_MAX_THREADS]).values_list("pk", "pinned_at", "last_message_at")
        for part in parts
    )
    rows = list(first.union(*others, all=True))
    newest = sorted((at, id) for id, pinned_at, at in rows if pinned_at is None)[-_MAX_THREADS:]
    return [*(id for id, pinned_at, _at in rows if pinned_at is not None), *(id for _at, id in newest)]


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

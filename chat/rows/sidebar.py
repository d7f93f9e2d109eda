"""Template rows of the thread list."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.mentions import mentions_of
from chat.models import ReaderMarks, Thread, Turn
from chat.realtime.messages import LinkState, ListChange
from chat.threads.reader_marks import is_unread, with_marks
from memory import api as memory

_MAX_THREADS = 60


@dataclass(frozen=True, slots=True)
class ThreadLink:
    """A thread in a person's list.

    `is_pinned` and `is_muted` are not known for a link that is built from its state, which is the same for all readers.
    """

    id: uuid.UUID
    title: str
    url: str
    menu_url: str
    is_open: bool
    is_answering: bool
    is_unread: bool
    is_remembered: bool
    space_kind: str
    space_name: str
    is_pinned: bool = False
    is_muted: bool = False


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """Threads of the list under one heading; `key` is "pinned", "today" or "earlier"."""

    key: str
    label: str
    threads: list[ThreadLink]


@dataclass(frozen=True, slots=True)
class ThreadList:
    """The groups of a person's list, how many threads they have archived, and how many mentions not seen."""

    groups: list[ThreadGroup]
    archived_count: int
    mention_count: int


def thread_list(person_id: uuid.UUID, open_id: uuid.UUID | None) -> ThreadList:
    """Return the threads this person reads, pinned ones first, then by age; `open_id` is the one that is open.

    All groups come always, even if they are empty, because links are moved between them.
    """
    rows = list(_listed_threads(person_id))
    pinned = sorted((t for t in rows if t.pinned_at), key=lambda t: t.pinned_at, reverse=True)
    latest = sorted((t for t in rows if not t.pinned_at), key=lambda t: t.last_message_at, reverse=True)
    today = timezone.localdate()
    groups = {
        "pinned": pinned,
        "today": [t for t in latest if timezone.localdate(t.last_message_at) >= today],
        "earlier": [t for t in latest if timezone.localdate(t.last_message_at) < today],
    }
    labels = {"pinned": _("Pinned"), "today": _("Today"), "earlier": _("Earlier")}
    rows = [
        ThreadGroup(key, labels[key], [_link(thread, person_id, open_id) for thread in threads])
        for key, threads in groups.items()
    ]
    return ThreadList(rows, **_counts(person_id))


def _counts(person_id: uuid.UUID) -> dict[str, int]:
    """Return the numbers of a thread list, with one statement."""
    archived = ReaderMarks.objects.filter(
        person_id=person_id,
        archived_at__isnull=False,
        thread__deleted_at=None,
        thread__space__in=memory.readable_spaces(person_id),
    )
    unseen = mentions_of(person_id).filter(is_seen=False)
    counts = {"archived_count": archived, "mention_count": unseen}
    people = get_user_model().objects.filter(pk=person_id)
    subqueries = {
        name: Subquery(rows.order_by().values("person").annotate(count=Count("pk")).values("count"))
        for name, rows in counts.items()
    }
    found: Any = people.values(**subqueries).get()
    return {name: count or 0 for name, count in found.items()}


def thread_links(
    person_id: uuid.UUID, open_id: uuid.UUID | None, changes: Mapping[uuid.UUID, ListChange]
) -> dict[uuid.UUID, ThreadLink]:
    """Return the links of those of the changed threads that are in this person's list, by thread."""
    links = {id: _link_of_open(id, change.state) for id, change in changes.items() if id == open_id and change.state}
    if other_ids := changes.keys() - links.keys():
        spaces = memory.readable_spaces(person_id).filter(archived_at=None)
        readable = Thread.objects.filter(pk__in=other_ids, deleted_at=None, space__in=spaces)
        listed = _with_marks(readable, person_id).filter(archived_at=None)
        links |= {thread.id: _link(thread, person_id, open_id) for thread in listed}
    return links


def _link_of_open(thread_id: uuid.UUID, state: LinkState) -> ThreadLink:
    """Return the link of the thread that is open, which is never unread."""
    return ThreadLink(
        **asdict(state),
        id=thread_id,
        url=reverse("thread", args=[thread_id]),
        menu_url=reverse("thread_menu", args=[thread_id]),
        is_open=True,
        is_unread=False,
    )


def _with_marks(threads: QuerySet[Thread], person_id: uuid.UUID) -> QuerySet[Any]:
    running = Turn.objects.filter(thread=OuterRef("pk"), state__in=Turn.RUNNING_STATES)
    marked: QuerySet[Any] = threads.select_related("space").annotate(has_running_answer=Exists(running))
    return with_marks(marked, person_id)


def _link(thread: Any, person_id: uuid.UUID, open_id: uuid.UUID | None) -> ThreadLink:
    return ThreadLink(
        id=thread.id,
        title=thread.title,
        url=reverse("thread", args=[thread.id]),
        menu_url=reverse("thread_menu", args=[thread.id]),
        is_open=thread.id == open_id,
        is_answering=thread.has_running_answer,
        is_unread=thread.id != open_id and is_unread(thread, person_id),
        is_remembered=thread.is_remembered,
        is_pinned=thread.pinned_at is not None,
        is_muted=thread.muted_at is not None,
        space_kind=thread.space.kind,
        space_name=thread.space.display_name,
    )


def _listed_threads(person_id: uuid.UUID) -> QuerySet[Any]:
    """Return the threads that this person pinned, and the newest others, with their marks.

    Threads that they archived and those of archived projects are left out.
    """
    open_spaces = memory.readable_spaces(person_id).filter(archived_at=None)
    spaces = list(open_spaces.values_list("id", flat=True))
    own_marks = ReaderMarks.objects.filter(person_id=person_id)
    pinned = own_marks.filter(
        pinned_at__isnull=False, archived_at=None, thread__deleted_at=None, thread__space__in=spaces
    )
    unpinned = Thread.objects.filter(deleted_at=None).exclude(
        pk__in=own_marks.filter(Q(archived_at__isnull=False) | Q(pinned_at__isnull=False)).values("thread_id")
    )
    newest = memory.newest_in_spaces(unpinned, spaces, _MAX_THREADS, by="last_message_at")
    # By id only: with a space condition, SQLite reads all threads of the spaces.
    listed = Q(pk__in=newest.order_by("-last_message_at").values("pk")[:_MAX_THREADS])
    return _with_marks(Thread.objects.filter(listed | Q(pk__in=pinned.values("thread_id"))), person_id)

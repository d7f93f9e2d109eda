"""Keeping threads in order: title, pin, archive, model, the next session; and taking turns or whole threads away."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from chat.images import delete_unreferenced, images_of
from chat.models import Session, Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.locks import ensure_idle, ensure_not_answering, lock_thread
from memory import api as memory
from memory.models import Space
from memory.retrieval.recall_filter import RecallFilter
from memory.spaces import access
from memory.text import clean_text
from memory.utils.batching import batched

# So long may a deleted thread be taken back; a little longer than the page offers it.
_REGRET = timedelta(seconds=15)
_TOGETHER = 200
_LONGEST_TITLE, _LONGEST_MODEL = 200, 120


def create_thread(
    person_id: uuid.UUID, *, title: str = "", space: Space | None = None, is_remembered: bool = True
) -> Thread:
    """A thread in which nothing was said yet, in `space` (one that this person reads; None: their own)."""
    title = _title(title)
    thread = Thread.objects.create(
        owner_id=person_id,
        space=space or access.personal_space(person_id),
        title=title or _("New thread"),
        titled_by=Thread.TitledBy.OWN if title else Thread.TitledBy.FIRST,
        model=get_user_model().objects.get(pk=person_id).default_model,
        is_remembered=is_remembered,
        spoken_at=timezone.now(),
    )
    notify_thread_changed(thread.id)
    return thread


def rename(thread: Thread, title: str) -> None:
    """Give the thread a title of one's own. Raises InvalidMessageError for an empty one."""
    title = _title(title)
    if not title:
        raise InvalidMessageError(_("Write a title; it is empty."))
    _change(thread, title=title, titled_by=Thread.TitledBy.OWN)


def set_pinned(thread: Thread, is_pinned: bool) -> None:
    """Keep the thread at the head of the list, or no longer."""
    _change(thread, pinned_at=timezone.now() if is_pinned else None)


def set_archived(thread: Thread, is_archived: bool) -> None:
    """Take the thread out of the list, or put it back; it is remembered and found as before."""
    now = timezone.now() if is_archived else None
    _change(thread, archived_at=now, pinned_at=None)


def set_model(thread: Thread, name: str) -> None:
    """Have another model answer in this thread; "" is the configured one."""
    Thread.objects.filter(id=thread.id).update(model=clean_text(name).strip()[:_LONGEST_MODEL])


@transaction.atomic
def continue_thread(thread: Thread, *, person_id: uuid.UUID) -> Session:
    """Begin the thread's next session; one in which nothing was said yet is taken up."""
    lock_thread(thread.id)
    last = thread.sessions.order_by("-seq").first()
    now = timezone.now()
    if last is not None and not last.turns.exists():
        Session.objects.filter(id=last.id).update(started_at=now)
        return last
    seq = 0 if last is None else last.seq + 1
    return Session.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)


@transaction.atomic
def delete_thread(thread: Thread) -> None:
    """Take the thread and what memory has of it out of every read; for a moment it can be taken back."""
    locked = lock_thread(thread.id)
    ensure_not_answering(locked)
    _change(thread, deleted_at=timezone.now())
    memory.deactivate(locked.turns.values_list("exchange_id", flat=True))


@transaction.atomic
def restore_thread(thread: Thread) -> bool:
    """Undo `delete_thread`; False where it is too late."""
    back = Thread.objects.filter(id=thread.id, deleted_at__gt=timezone.now() - _REGRET).update(deleted_at=None)
    if back:
        memory.activate(thread.turns.standing().values_list("exchange_id", flat=True))
        notify_thread_changed(thread.id)
    return bool(back)


def delete_last_turns(thread: Thread, count: int, *, by: uuid.UUID) -> list[uuid.UUID]:
    """Remove the last `count` turns of the branch that stands and forget their exchanges; returns their ids.

    What branched off from them goes too. Raises ThreadBusyError while an answer is written.
    """
    with transaction.atomic():
        locked = lock_thread(thread.id)
        ensure_idle(locked)
        last = list(locked.turns.standing().order_by("-position")[:count])
        if not last:
            return []
        doomed = {last[-1].id}
        for id, parent_id in locked.turns.order_by("position").values_list("id", "parent_id"):
            if parent_id in doomed:
                doomed.add(id)
        Thread.objects.filter(id=thread.id).update(head=last[-1].parent_id)
        _remove(Turn.objects.filter(id__in=doomed), by=by)
    return [turn.id for turn in last]


def purge_deleted() -> int:
    """Forget and remove the threads that were deleted and not taken back; returns how many. Repeatable."""
    purged = 0
    for thread in Thread.objects.filter(deleted_at__lt=timezone.now() - _REGRET)[:_TOGETHER]:
        with transaction.atomic():
            _remove_whole(thread, by=thread.owner_id)
        purged += 1
    return purged


def delete_threads_in_space(space_id: uuid.UUID, *, by: uuid.UUID) -> int:
    """Remove a slice of the threads of this space, and forget their exchanges; returns how many. Repeatable.

    One that is being answered is told to stop and left for the next call.
    """
    removed = 0
    for thread in Thread.objects.filter(space_id=space_id).order_by("id")[:_TOGETHER]:
        with transaction.atomic():
            locked = Thread.objects.select_for_update().filter(id=thread.id).first()
            if locked is None:
                continue
            locked.turns.filter(state=Turn.State.QUEUED).update(state=Turn.State.STOPPED)
            if not locked.turns.filter(state__in=Turn.ACTIVE).update(stop_asked=True):
                _remove_whole(locked, by=by)
                removed += 1
    return removed


def _remove_whole(thread: Thread, *, by: uuid.UUID) -> None:
    Thread.objects.filter(id=thread.id).update(head=None)
    _remove(thread.turns.all(), by=by)
    thread.sessions.all().delete()
    thread.delete()


def _title(text: str) -> str:
    return " ".join(clean_text(text).split())[:_LONGEST_TITLE]


def _change(thread: Thread, **fields: object) -> None:
    Thread.objects.filter(id=thread.id).update(**fields)
    notify_thread_changed(thread.id)


def _remove(turns: Iterable[Turn], *, by: uuid.UUID) -> None:
    for some in batched(turns, _TOGETHER):
        memory.forget([turn.exchange_id for turn in some if turn.exchange_id], by=by)
        memory.delete_recall_log(turn.id for turn in some)
        pictures = images_of(some)
        Turn.objects.filter(id__in=[turn.id for turn in some]).delete()
        delete_unreferenced(pictures)


def set_scope(thread: Thread, scope: RecallFilter) -> None:
    """Recall for this thread from what `scope` says alone, from the next message on."""
    thread.scope = {} if scope.is_everything else scope.as_json()
    thread.save(update_fields=["scope"])

"""Create, rename, continue, move and delete threads, and delete turns."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.attachments import attachments_of, delete_unreferenced, move_documents_of
from chat.errors import InvalidMessageError
from chat.llm.choices import space_model
from chat.models import ReaderMarks, Thread, ThreadSession, Turn
from chat.realtime.notifications import active_readers, notify_after_commit, notify_thread_changed
from chat.threads.locks import ensure_idle, ensure_not_answering, lock_thread
from chat.threads.titles import reset_title
from chat.usage.counting import count_before_deletion
from memory import api as memory
from memory.api import RecallFilter, Space, batched, clean_text

# A deleted thread can be restored for this long, slightly longer than the page offers it.
_UNDO_WINDOW = timedelta(seconds=15)
_BATCH_SIZE = 200
_MAX_TITLE_LENGTH, _MAX_MODEL_LENGTH = 200, 120


def create_thread(
    person_id: uuid.UUID, *, title: str = "", space: Space | None = None, is_remembered: bool = True
) -> Thread:
    """Create an empty thread in `space`, which this person can read; None: the personal space.

    Raises InvalidInputError for an archived project.
    """
    space = space or memory.personal_space(person_id)
    memory.ensure_open(space)
    title = _clean_title(title)
    thread = Thread.objects.create(
        owner_id=person_id,
        space=space,
        title=title or _("New thread"),
        title_source=Thread.TitleSource.USER if title else Thread.TitleSource.FIRST_MESSAGE,
        model=space_model(space.id) or get_user_model().objects.get(pk=person_id).default_model,
        is_remembered=is_remembered,
        last_message_at=timezone.now(),
    )
    notify_thread_changed(thread.id)
    return thread


def rename_thread(thread: Thread, title: str) -> None:
    """Set the thread's title. Raises InvalidMessageError for an empty one."""
    title = _clean_title(title)
    if not title:
        raise InvalidMessageError(_("Write a title; it is empty."))
    _update(thread, title=title, title_source=Thread.TitleSource.USER)


def set_model(thread: Thread, name: str) -> None:
    """Set the thread's model; "" is the configured one."""
    Thread.objects.filter(id=thread.id).update(model=clean_text(name).strip()[:_MAX_MODEL_LENGTH])


def set_recall_filter(thread: Thread, recall_filter: RecallFilter) -> None:
    """Limit recall for this thread, from the next message on."""
    thread.recall_filter = {} if recall_filter.is_empty else recall_filter.as_json()
    thread.save(update_fields=["recall_filter"])


@transaction.atomic
def continue_thread(thread: Thread, *, person_id: uuid.UUID) -> ThreadSession:
    """Start the thread's next session; reuse the last one if it has no turns."""
    lock_thread(thread.id)
    last = thread.sessions.order_by("-seq").first()
    now = timezone.now()
    if last is not None and not last.turns.exists():
        ThreadSession.objects.filter(id=last.id).update(started_at=now)
        return last
    seq = 0 if last is None else last.seq + 1
    return ThreadSession.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)


@transaction.atomic
def delete_thread(thread: Thread) -> None:
    """Hide the thread and its exchanges from every read; `restore_thread` can undo it for 15 seconds."""
    locked = lock_thread(thread.id)
    ensure_not_answering(locked)
    _update(thread, deleted_at=timezone.now())
    memory.deactivate(locked.turns.values_list("exchange_id", flat=True))


@transaction.atomic
def restore_thread(thread: Thread) -> bool:
    """Undo `delete_thread`; return False if it is too late."""
    restored = Thread.objects.filter(id=thread.id, deleted_at__gt=timezone.now() - _UNDO_WINDOW).update(deleted_at=None)
    if restored:
        rows = thread.turns.values_list("exchange_id", "is_on_active_branch")
        is_shown = {id: is_active for id, is_active in rows if id is not None}
        memory.lock_with_statements(is_shown)
        memory.activate(id for id in is_shown if is_shown[id])
        memory.deactivate((id for id in is_shown if not is_shown[id]), are_citable=True)
        notify_thread_changed(thread.id)
    return bool(restored)


@transaction.atomic
def move_thread(thread: Thread, *, to: Space, by: uuid.UUID) -> int:
    """Move the thread and its exchanges to another space; return the number of exchanges moved.

    Raises ThreadBusyError while an answer is in progress: it uses what the present readers may know.
    """
    locked = lock_thread(thread.id)
    ensure_idle(locked)
    notify_after_commit(active_readers(locked.space))
    Thread.objects.filter(id=thread.id).update(space=to)
    moved = memory.move_thread(thread.id, to=to, by=by)
    move_documents_of(locked, to=to, by=by)
    ReaderMarks.objects.filter(thread=thread).exclude(person_id__in=active_readers(to)).delete()
    notify_thread_changed(thread.id)
    return moved


@dataclass(frozen=True, slots=True)
class LastTurns:
    """The last turns of the active branch, all turns that are deleted with them, and the last turn that is left."""

    ids: list[uuid.UUID]
    deleted_ids: set[uuid.UUID]
    head_id: uuid.UUID | None

    @property
    def other_count(self) -> int:
        """Return how many turns of other branches are deleted with them."""
        return len(self.deleted_ids) - len(self.ids)


def last_turns(thread: Thread, count: int) -> LastTurns:
    """Return the last `count` turns of the active branch, with all versions of the first and the turns below these."""
    last = list(thread.turns.active_branch().order_by("-position")[:count])
    if not last:
        return LastTurns([], set(), thread.head_id)
    first = last[-1]
    deleted_ids = set(thread.turns.filter(parent_id=first.parent_id).values_list("id", flat=True))
    for id, parent_id in thread.turns.order_by("position").values_list("id", "parent_id"):
        if parent_id in deleted_ids:
            deleted_ids.add(id)
    return LastTurns([turn.id for turn in last], deleted_ids, first.parent_id)


def delete_last_turns(thread: Thread, count: int, *, by: uuid.UUID) -> LastTurns:
    """Delete the last `count` turns of the active branch with their versions, and forget their exchanges.

    With the first turn, the title that comes from it is deleted, too. Raises ThreadBusyError while an answer is in progress.
    """
    with transaction.atomic():
        locked = lock_thread(thread.id)
        ensure_idle(locked)
        last = last_turns(locked, count)
        Thread.objects.filter(id=thread.id).update(head=last.head_id)
        deleted = Turn.objects.filter(id__in=last.deleted_ids)
        count_before_deletion(deleted, Thread.objects.filter(id=thread.id))
        _delete_turns(deleted, by=by)
        if last.ids and last.head_id is None:
            reset_title(locked)
    return last


def purge_deleted() -> int:
    """Remove a batch of threads whose deletion can no longer be undone, forget their exchanges; return the number."""
    due = Thread.objects.filter(deleted_at__lt=timezone.now() - _UNDO_WINDOW)
    removed = 0
    for thread_id in list(due.values_list("id", flat=True)[:_BATCH_SIZE]):
        with transaction.atomic():
            # An undo in time can be committed only now.
            thread = due.select_for_update().filter(id=thread_id).first()
            if thread is not None:
                _delete_row(thread, by=thread.owner_id)
                removed += 1
    return removed


def delete_threads_in_space(space_id: uuid.UUID, *, by: uuid.UUID) -> int:
    """Delete a batch of the threads of this space, forget their exchanges, and return the number of threads deleted.

    A running answer is stopped first; its thread is left for the next call.
    """
    deleted = 0
    for thread in Thread.objects.filter(space_id=space_id).order_by("id")[:_BATCH_SIZE]:
        with transaction.atomic():
            locked = Thread.objects.select_for_update().filter(id=thread.id).first()
            if locked is None:
                continue
            locked.turns.filter(state=Turn.State.QUEUED).update(state=Turn.State.STOPPED)
            if not locked.turns.filter(state__in=Turn.RUNNING_STATES).update(stop_requested=True):
                _delete_row(locked, by=by)
                deleted += 1
    return deleted


def _delete_row(thread: Thread, *, by: uuid.UUID) -> None:
    count_before_deletion(thread.turns.all(), Thread.objects.filter(id=thread.id))
    Thread.objects.filter(id=thread.id).update(head=None)
    _delete_turns(thread.turns.all(), by=by)
    thread.sessions.all().delete()
    thread.delete()


def _clean_title(text: str) -> str:
    return " ".join(clean_text(text).split())[:_MAX_TITLE_LENGTH]


def _update(thread: Thread, **fields: object) -> None:
    Thread.objects.filter(id=thread.id).update(**fields)
    notify_thread_changed(thread.id)


def _delete_turns(turns: Iterable[Turn], *, by: uuid.UUID) -> None:
    for batch in batched(turns, _BATCH_SIZE):
        memory.forget([turn.exchange_id for turn in batch if turn.exchange_id], by=by)
        memory.delete_recall_log(turn.id for turn in batch)
        attachments = attachments_of(batch)
        Turn.objects.filter(id__in=[turn.id for turn in batch]).delete()
        delete_unreferenced(attachments, by=by)

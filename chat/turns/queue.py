"""The queued messages of a thread: start the next one, withdraw one, move one up."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.attachments import attachments_of, delete_unreferenced
from chat.errors import ConflictError, PermissionDeniedError, UsageLimitError
from chat.models import Attachment, Thread, Turn
from chat.realtime.notifications import notify_link_changed
from chat.threads.locks import lock_person, lock_thread
from chat.threads.titles import reset_title
from chat.turns.answer_limit import has_free_answer
from chat.usage.limits import LIMIT_REACHED, ensure_within_limits


@transaction.atomic
def withdraw_message(turn: Turn, *, by: uuid.UUID) -> None:
    """Delete a queued message of this author with its attachments. Raises ConflictError, PermissionDeniedError."""
    delete_unreferenced(_withdraw(turn, by=by), by=by)


@transaction.atomic
def withdraw_to_edit(turn: Turn, *, by: uuid.UUID) -> list[Attachment]:
    """Delete a queued message of this author; return its attachments, which can be sent again.

    Raises ConflictError once its answer has started, PermissionDeniedError.
    """
    return _withdraw(turn, by=by)


@transaction.atomic
def move_up(turn: Turn, *, by: uuid.UUID) -> list[uuid.UUID]:
    """Have a queued message of this author answered before their message directly before it.

    Return the ids of the queued turns from the moved one on, in their new order. Raises ConflictError once its answer
    has started and if no message of the same author is queued directly before it, PermissionDeniedError.
    """
    thread, queued = _lock_queue(turn)
    index = _index_of(turn, queued)
    if by != turn.author_id:
        raise PermissionDeniedError(_("Only the author can move this message."))
    if not can_move_up(queued, index):
        raise ConflictError(_("This message cannot be moved further up."))
    previous, moved = queued[index - 1], queued[index]
    moved.children.update(parent=previous)
    _place(moved, previous.position, parent_id=previous.parent_id, session_id=previous.session_id)
    _place(previous, moved.position, parent_id=moved.id, session_id=moved.session_id)
    if thread.head_id == moved.id:
        Thread.objects.filter(id=thread.id).update(head=previous)
    return [moved.id, previous.id, *(later.id for later in queued[index + 1 :])]


def can_move_up(queued: Sequence[Turn], index: int) -> bool:
    """Return whether the author of the turn at this index of the queue may swap it with the one before it."""
    if index == 0:
        return False
    previous, turn = queued[index - 1], queued[index]
    return previous.author_id == turn.author_id and turn.parent_id == previous.id


@transaction.atomic
def start_next_queued(thread_id: uuid.UUID) -> Turn | None:
    """Start the next queued turn of the thread and return it.

    Return None if no turn is queued, an answer is running in the thread, the author has no free answer, or the thread is
    deleted, which can be undone. If a limit of usage was reached while it waited, it is returned as failed, with the text of
    the limit.
    """
    queued = Turn.objects.filter(thread_id=thread_id, state=Turn.State.QUEUED).order_by("position")
    turn = queued.first()
    if turn is None:
        return None
    # Locks are always taken in this order: person, thread.
    author = lock_person(turn.author_id)
    thread = lock_thread(thread_id)
    author_id = turn.author_id
    # The queue can have changed before its thread was locked.
    turn = queued.first() if thread.deleted_at is None else None
    if turn is None or turn.author_id != author_id or thread.is_answering() or not has_free_answer(turn.author_id):
        return None
    turn.state, turn.revision, turn.heartbeat_at = Turn.State.RECALLING, turn.revision + 1, timezone.now()
    try:
        ensure_within_limits(author, space=thread.space, api_token_id=turn.api_token_id)
    except UsageLimitError as error:
        turn.state, turn.completed_at = Turn.State.FAILED, timezone.now()
        turn.error_code, turn.error = LIMIT_REACHED, str(error)[:300]
    turn.save(update_fields=["state", "revision", "heartbeat_at", "completed_at", "error_code", "error"])
    notify_link_changed(thread, is_answering=turn.is_running)
    return turn


@dataclass(frozen=True, slots=True)
class Successors:
    """The turns after an answer that has ended: the one that runs in its thread already, and the threads with waiting ones.

    `running` has no more than `id`, `thread_id`, `author_id` and `state` loaded, because there rarely is one.
    """

    running: Turn | None
    queued_thread_ids: tuple[uuid.UUID, ...]


def find_successors(thread_id: uuid.UUID, author_id: uuid.UUID) -> Successors:
    """Return what follows an answer: turns of its thread, then waiting ones of its author in other threads."""
    of_thread = Q(thread_id=thread_id, state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED])
    rows = list(
        Turn.objects.filter(of_thread | Q(author_id=author_id, state=Turn.State.QUEUED))
        .only("thread_id", "author_id", "state")
        .order_by("created_at")
    )
    running = next((turn for turn in rows if turn.state != Turn.State.QUEUED), None)
    queued = dict.fromkeys(turn.thread_id for turn in rows if turn.state == Turn.State.QUEUED)
    return Successors(running, tuple(sorted(queued, key=lambda id: id != thread_id)))


def start_queued_in(thread_ids: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Start the next queued turn of each of these threads, if it can start; return their ids.

    Turns that failed at a limit of usage are returned, too; they are not waited for.
    """
    started = []
    for thread_id in thread_ids:
        while (turn := start_next_queued(thread_id)) is not None:
            started.append(turn.id)
            if turn.is_running:
                break
    return started


def start_queued_after_answer(thread_id: uuid.UUID, author_id: uuid.UUID) -> list[uuid.UUID]:
    """Start the turns that waited for an answer: the next one of its thread, then others of its author; return their ids."""
    return start_queued_in(find_successors(thread_id, author_id).queued_thread_ids)


def start_all_queued() -> list[uuid.UUID]:
    """Start the next queued turn of each thread without a running answer; return their ids."""
    running = Turn.objects.filter(thread=OuterRef("thread"), state__in=Turn.RUNNING_STATES)
    idle = Turn.objects.filter(~Exists(running), state=Turn.State.QUEUED).values_list("thread_id", flat=True).distinct()
    return start_queued_in(idle)


def _lock_queue(turn: Turn) -> tuple[Thread, list[Turn]]:
    thread = lock_thread(turn.thread_id)
    return thread, list(thread.turns.filter(state=Turn.State.QUEUED).order_by("position"))


def _index_of(turn: Turn, queued: Sequence[Turn]) -> int:
    index = next((index for index, row in enumerate(queued) if row.id == turn.id), None)
    if index is None:
        raise ConflictError(_("The answer has already started. Stop it instead."))
    return index


def _place(turn: Turn, position: int, *, parent_id: uuid.UUID | None, session_id: uuid.UUID) -> None:
    Turn.objects.filter(id=turn.id).update(
        position=position, parent_id=parent_id, session_id=session_id, revision=F("revision") + 1
    )


def _withdraw(turn: Turn, *, by: uuid.UUID) -> list[Attachment]:
    thread, queued = _lock_queue(turn)
    row = queued[_index_of(turn, queued)]
    if by != row.author_id:
        raise PermissionDeniedError(_("Only the author can withdraw this message."))
    row.children.update(parent=row.parent_id)
    if thread.head_id == row.id:
        Thread.objects.filter(id=thread.id).update(head=row.parent_id)
    attachments = attachments_of([row])
    row.delete()
    if row.parent_id is None:
        reset_title(thread)
    return attachments

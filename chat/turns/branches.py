"""Branches of a thread: editing a message, regenerating an answer, and switching between the versions."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ConflictError
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.locks import ensure_idle, lock_person, lock_thread
from chat.threads.read_markers import ensure_marker
from chat.turns.posting import ApiOrigin, PostedTurn, current_session, ensure_free_answer, fields_of, validate_message
from memory import api as memory


@dataclass(frozen=True, slots=True)
class BranchSwitch:
    """What pages must know of a switch: the turns that are no longer shown, and those that now are, in order."""

    asked: PostedTurn
    gone: tuple[uuid.UUID, ...] = ()
    shown: tuple[uuid.UUID, ...] = ()


def edit_message(
    turn: Turn, *, person_id: uuid.UUID, message: str, client_key: uuid.UUID, origin: ApiOrigin | None = None
) -> BranchSwitch:
    """Replace the message of this turn; the new branch becomes the active one.

    `person_id`: who edits, the author of the turn or the owner of the thread. Raises InvalidMessageError, ConflictError.
    """
    return _add_sibling(turn, person_id, person_id, validate_message(message), client_key, origin)


def regenerate(
    turn: Turn, *, person_id: uuid.UUID, client_key: uuid.UUID, origin: ApiOrigin | None = None
) -> BranchSwitch:
    """Regenerate the answer of this turn; the new branch becomes the active one. Raises ConflictError.

    `person_id`: who asks for it, the author of the turn or the owner of the thread.
    """
    return _add_sibling(turn, person_id, turn.author_id, turn.message, client_key, origin)


@transaction.atomic
def switch_branch(turn: Turn, *, person_id: uuid.UUID) -> BranchSwitch:
    """Make the branch through this turn the active one, as far as it was last followed.

    `person_id`: who switches, the author of the turn or the owner of the thread. Raises ConflictError.
    """
    thread = lock_thread(turn.thread_id)
    ensure_idle(thread)
    children: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    for id, parent_id in thread.turns.order_by("position").values_list("id", "parent_id"):
        children[parent_id].append(id)
    leaf = turn.id
    while children[leaf]:
        leaf = children[leaf][-1]
    gone, shown = _activate_branch(thread, leaf, person_id)
    return BranchSwitch(PostedTurn(turn, is_new=False), gone, shown)


@transaction.atomic
def _add_sibling(
    turn: Turn,
    person_id: uuid.UUID,
    author_id: uuid.UUID,
    message: str,
    client_key: uuid.UUID,
    origin: ApiOrigin | None,
) -> BranchSwitch:
    lock_person(author_id)
    thread = lock_thread(turn.thread_id)
    again = thread.turns.filter(client_key=client_key).first()
    if again is not None:
        return BranchSwitch(PostedTurn(again, is_new=False))
    ensure_idle(thread)
    ensure_free_answer(author_id)
    now = timezone.now()
    last = thread.turns.aggregate(last=Max("position"))["last"]
    new = Turn.objects.create(
        thread=thread,
        session=current_session(thread, author_id),
        parent_id=turn.parent_id,
        position=last + 1,
        author_id=author_id,
        client_key=client_key,
        message=message,
        state=Turn.State.RECALLING,
        attempt=1,
        heartbeat_at=now,
        **fields_of(origin),
    )
    new.images.set(turn.images.all())
    gone, shown = _activate_branch(thread, new.id, person_id)
    Thread.objects.filter(id=thread.id).update(spoken_at=now, changed_at=now)
    ensure_marker(thread, author_id)
    notify_thread_changed(thread.id)
    return BranchSwitch(PostedTurn(new, is_new=True), gone, shown)


def _activate_branch(
    thread: Thread, leaf: uuid.UUID, person_id: uuid.UUID
) -> tuple[tuple[uuid.UUID, ...], tuple[uuid.UUID, ...]]:
    """Make the branch that ends with `leaf` the active one, in the thread and in memory.

    Returns the turns that are no longer shown and those that now are, in order. Raises ConflictError if that hides a turn of
    somebody else from memory and `person_id` does not own the thread.
    """
    fields = ("id", "parent_id", "stands", "exchange_id", "position", "author_id")
    rows = {row.id: row for row in thread.turns.values_list(*fields, named=True)}
    branch: set[uuid.UUID] = set()
    at: uuid.UUID | None = leaf
    while at is not None:
        branch.add(at)
        at = rows[at].parent_id
    in_order = sorted(rows, key=lambda id: rows[id].position)
    gone = tuple(id for id in in_order if rows[id].stands and id not in branch)
    shown = tuple(id for id in in_order if id in branch and (not rows[id].stands or id == leaf))
    if thread.owner_id != person_id and any(rows[id].author_id != person_id for id in gone):
        raise ConflictError(_("This would hide messages that other people wrote after it. Fork the thread instead."))
    thread.turns.filter(id__in=gone).update(stands=False)
    thread.turns.filter(id__in=shown).update(stands=True)
    memory.deactivate(rows[id].exchange_id for id in gone)
    memory.activate(rows[id].exchange_id for id in shown)
    Thread.objects.filter(id=thread.id).update(head=leaf)
    return gone, shown

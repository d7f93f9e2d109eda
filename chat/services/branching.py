"""Branches: a message edited, an answer made again, and which of them stands. Nothing of the others is lost."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Refused
from chat.models import Thread, Turn
from chat.news import thread_changed
from chat.services.asking import Asked, checked_message, session_for
from chat.services.reading import note_seen
from memory import services as memory


@dataclass(frozen=True, slots=True)
class Switched:
    """What pages must know when another branch stands: the turns that no longer do, and those that do now, in order."""

    asked: Asked
    gone: tuple[uuid.UUID, ...] = ()
    shown: tuple[uuid.UUID, ...] = ()


def edit(turn: Turn, *, author_id: uuid.UUID, message: str, client_key: uuid.UUID) -> Switched:
    """Say `message` in the place of this turn's; the new branch stands. Raises Refused."""
    return _beside(turn, author_id=author_id, message=checked_message(message), client_key=client_key)


def answer_again(turn: Turn, *, client_key: uuid.UUID) -> Switched:
    """Have the same message answered once more; the new branch stands. Raises Refused."""
    return _beside(turn, author_id=turn.author_id, message=turn.message, client_key=client_key)


@transaction.atomic
def choose(turn: Turn) -> Switched:
    """Let the branch through this turn stand, as far as it was last followed. Raises Refused while an answer is written."""
    thread = _locked(turn.thread_id)
    _refuse_while_busy(thread)
    children: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    for id, parent_id in thread.turns.order_by("position").values_list("id", "parent_id"):
        children[parent_id].append(id)
    leaf = turn.id
    while children[leaf]:
        leaf = children[leaf][-1]
    gone, shown = _stand(thread, leaf)
    return Switched(Asked(turn, is_new=False), gone, shown)


@transaction.atomic
def _beside(turn: Turn, *, author_id: uuid.UUID, message: str, client_key: uuid.UUID) -> Switched:
    thread = _locked(turn.thread_id)
    again = thread.turns.filter(client_key=client_key).first()
    if again is not None:
        return Switched(Asked(again, is_new=False))
    _refuse_while_busy(thread)
    now = timezone.now()
    last = thread.turns.aggregate(last=Max("position"))["last"]
    new = Turn.objects.create(
        thread=thread,
        session=session_for(thread, author_id),
        parent_id=turn.parent_id,
        position=last + 1,
        author_id=author_id,
        client_key=client_key,
        message=message,
        state=Turn.State.RECALLING,
        attempt=1,
        heartbeat_at=now,
    )
    new.images.set(turn.images.all())
    gone, shown = _stand(thread, new.id)
    Thread.objects.filter(id=thread.id).update(spoken_at=now, changed_at=now)
    note_seen(thread, author_id)
    thread_changed(thread.id)
    return Switched(Asked(new, is_new=True), gone, shown)


def _stand(thread: Thread, leaf: uuid.UUID) -> tuple[tuple[uuid.UUID, ...], tuple[uuid.UUID, ...]]:
    """Let the branch that ends with `leaf` stand, in the thread and in memory; returns who no longer does, and who does
    now, in order."""
    rows = {row[0]: row[1:] for row in thread.turns.values_list("id", "parent_id", "stands", "exchange_id", "position")}
    branch: set[uuid.UUID] = set()
    at: uuid.UUID | None = leaf
    while at is not None:
        branch.add(at)
        at = rows[at][0]
    in_order = sorted(rows, key=lambda id: rows[id][3])
    gone = tuple(id for id in in_order if rows[id][1] and id not in branch)
    shown = tuple(id for id in in_order if id in branch and (not rows[id][1] or id == leaf))
    thread.turns.filter(id__in=gone).update(stands=False)
    thread.turns.filter(id__in=shown).update(stands=True)
    memory.hide(rows[id][2] for id in gone)
    memory.show(rows[id][2] for id in shown)
    Thread.objects.filter(id=thread.id).update(head=leaf)
    return gone, shown


def _locked(thread_id: uuid.UUID) -> Thread:
    return Thread.objects.select_for_update().get(id=thread_id)


def _refuse_while_busy(thread: Thread) -> None:
    if thread.turns.filter(state__in=[*Turn.ACTIVE, Turn.State.QUEUED]).exists():
        raise Refused(_("An answer is being written in this thread. Stop it or wait until it is done."))

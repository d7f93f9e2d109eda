"""Fork a thread: copy it up to a turn into a new thread."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from chat.models import Thread, ThreadSession, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.locks import lock_thread
from memory import api as memory
from memory.api import NotFoundError

_BATCH_SIZE = 500
_COPIED_FIELDS = (
    "author_id",
    "message",
    "answer",
    "reasoning",
    "tool_messages",
    "state",
    "stopped_by_id",
    "model",
    "is_dummy",
    "images_dropped",
    "error",
    "error_code",
)


@transaction.atomic
def fork_thread(turn: Turn, *, person_id: uuid.UUID, is_included: bool = True) -> Thread:
    """Copy the branch that ends with `turn` into a new thread in this person's personal space.

    `is_included`: False leaves `turn` itself out, so that the new thread can be empty. Exchanges stay with the
    original turns: they are not stored twice, and forgetting one also applies to the copy. An answer in progress is
    copied as interrupted. Raises NotFoundError if the turn was deleted meanwhile.
    """
    # What is forgotten everywhere at this moment is either not copied, or found in the copy.
    try:
        source = lock_thread(turn.thread_id)
    except Thread.DoesNotExist:
        raise NotFoundError from None
    branch = _branch(turn)
    forked = Thread.objects.create(
        owner_id=person_id,
        space=memory.personal_space(person_id),
        title=source.title,
        title_source=source.title_source,
        is_remembered=source.is_remembered,
        model=source.model,
        instructions=source.instructions,
        recall_filter=source.recall_filter,
        tool_server_ids=source.tool_server_ids,
        has_web_search=source.has_web_search,
        opening_hash=source.opening_hash,
        last_message_at=timezone.now(),
    )
    session = ThreadSession.objects.create(thread=forked, started_by_id=person_id, started_at=timezone.now())
    _copy_turns(branch if is_included else branch[:-1], session)
    notify_thread_changed(forked.id)
    return forked


def _copy_turns(originals: Sequence[Turn], session: ThreadSession) -> None:
    """Copy the turns, in their order, into the thread of the session, in few statements, as others wait for them."""
    copies: list[Turn] = []
    for position, original in enumerate(originals):
        copy = Turn(
            thread_id=session.thread_id,
            session=session,
            parent=copies[-1] if copies else None,
            position=position,
            client_key=uuid.uuid4(),
            # The exchange of a turn without one, such as of an answer in progress, will have the id of the turn.
            copied_exchange_id=original.exchange_id or original.copied_exchange_id or original.id,
            completed_at=original.completed_at,
            **{name: getattr(original, name) for name in _COPIED_FIELDS},
        )
        if copy.is_running or copy.state == Turn.State.QUEUED:
            copy.state = Turn.State.INTERRUPTED
        copies.append(copy)
    Turn.objects.bulk_create(copies)
    for copy, original in zip(copies, originals, strict=True):
        # `auto_now_add` sets it on saving; a copy keeps the original's date.
        copy.created_at = original.created_at
    Turn.objects.bulk_update(copies, ["created_at"], batch_size=_BATCH_SIZE)
    link = Turn.attachments.through
    copy_ids = {original.id: copy.id for original, copy in zip(originals, copies, strict=True)}
    attached = link.objects.filter(turn_id__in=list(copy_ids)).order_by("id").values_list("turn_id", "attachment_id")
    link.objects.bulk_create(link(turn_id=copy_ids[turn_id], attachment_id=id) for turn_id, id in attached)
    Thread.objects.filter(id=session.thread_id).update(head=copies[-1] if copies else None)


def _branch(turn: Turn) -> list[Turn]:
    """Return the turns from the first one to this one. Raises NotFoundError if it was deleted."""
    rows = {row.id: row for row in turn.thread.turns.filter(position__lte=turn.position)}
    if turn.id not in rows:
        raise NotFoundError
    branch = [rows[turn.id]]
    while (parent := branch[-1].parent_id) is not None:
        branch.append(rows[parent])
    return branch[::-1]

"""Fork a thread: copy it up to a turn into a new thread."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils import timezone

from chat.models import Thread, ThreadSession, Turn
from chat.realtime.notifications import notify_thread_changed
from memory import api as memory

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
    copied as interrupted.
    """
    source = turn.thread
    forked = Thread.objects.create(
        owner_id=person_id,
        space=memory.personal_space(person_id),
        title=source.title,
        title_source=Thread.TitleSource.USER,
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
    parent = None
    branch = _branch(turn)
    for position, original in enumerate(branch if is_included else branch[:-1]):
        copy = Turn(
            thread=forked,
            session=session,
            parent=parent,
            position=position,
            client_key=uuid.uuid4(),
            copied_exchange_id=original.exchange_id or original.copied_exchange_id,
            completed_at=original.completed_at,
            **{name: getattr(original, name) for name in _COPIED_FIELDS},
        )
        if copy.is_running or copy.state == Turn.State.QUEUED:
            copy.state = Turn.State.INTERRUPTED
        copy.save()
        copy.attachments.set(original.attachments.all())
        # `auto_now_add` sets it on saving; a copy keeps the original's date.
        Turn.objects.filter(id=copy.id).update(created_at=original.created_at)
        parent = copy
    Thread.objects.filter(id=forked.id).update(head=parent)
    notify_thread_changed(forked.id)
    return forked


def _branch(turn: Turn) -> list[Turn]:
    rows = {row.id: row for row in turn.thread.turns.filter(position__lte=turn.position)}
    branch = [rows[turn.id]]
    while (parent := branch[-1].parent_id) is not None:
        branch.append(rows[parent])
    return branch[::-1]

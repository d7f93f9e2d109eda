"""Save imported pairs as turns of a thread, with their dates, files and exchanges."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Max, prefetch_related_objects

from chat.attachments import add_attachments, store_documents
from chat.imports.files import store_texts
from chat.imports.formats.conversation import Conversation
from chat.imports.formats.pairs import Pair
from chat.imports.formats.transcripts import lines_of, merge_texts, part_of, without_lines
from chat.models import Thread, ThreadSession, Turn
from chat.threads.reader_marks import set_archived, set_pinned
from memory import api as memory
from memory.api import Exchange, NewExchange, Space

_MAX_TITLE_LENGTH, _MAX_MODEL_LENGTH = 200, 120


@dataclass(frozen=True, slots=True)
class DatedPair:
    """A pair with the id and the dates of its turn."""

    id: uuid.UUID
    parent_id: uuid.UUID | None
    pair: Pair
    sent_at: datetime
    answered_at: datetime


@transaction.atomic
def save_batch(
    conversation: Conversation,
    title: str,
    thread_id: uuid.UUID,
    every: Sequence[DatedPair],
    dated: Sequence[DatedPair],
    space: Space,
    person_id: uuid.UUID,
) -> int:
    """Save the new turns and store their exchanges; return the number of turns created or completed.

    `every` has all pairs of the conversation, `dated` those of this batch.
    """
    first = dated[0].sent_at
    thread, is_new = Thread.objects.select_for_update().get_or_create(
        id=thread_id,
        defaults={
            "owner_id": person_id,
            "space": space,
            "title": title[:_MAX_TITLE_LENGTH],
            "is_remembered": conversation.is_remembered,
            "last_message_at": first,
        },
    )
    if is_new:
        Thread.objects.filter(id=thread_id).update(created_at=min(first, conversation.created_at or first))
        _mark(thread, conversation, person_id)
    session, _is_new = ThreadSession.objects.get_or_create(
        id=uuid.uuid5(thread_id, "session"),
        defaults={"thread": thread, "seq": 0, "started_by_id": person_id, "started_at": first},
    )
    known = thread.turns.in_bulk([item.id for item in dated])
    changed = _update_known(thread, known, dated)
    if conversation.is_transcript:
        changed += _extend_known(thread, every, dated)
    written = _create_turns(thread, session, every, [item for item in dated if item.id not in known])
    active = [turn for turn in (*changed, *written) if turn.is_on_active_branch]
    if conversation.is_transcript:
        # Its parts are no context of each other, so their exchanges are in no session.
        store_exchanges(thread, None, active)
    else:
        store_exchanges(thread, session, _answered(active))
    versions = [turn for turn in written if not turn.is_on_active_branch]
    store_exchanges(thread, session, _answered(versions))
    memory.deactivate((turn.exchange_id for turn in versions), are_citable=True)
    return len(changed) + len(written)


def _update_known(thread: Thread, known: Mapping[uuid.UUID, Turn], dated: Sequence[DatedPair]) -> list[Turn]:
    """Add new answers to known turns; return these turns, and those whose exchange is not stored yet."""
    changed = []
    for item in dated:
        turn = known.get(item.id)
        if turn is None:
            continue
        if item.pair.answer and not turn.answer:
            turn.answer, turn.model = item.pair.answer, item.pair.model[:_MAX_MODEL_LENGTH]
            turn.completed_at = item.answered_at
            turn.revision += 1
            changed.append(turn)
        elif turn.answer and turn.is_on_active_branch and turn.exchange_id is None and _is_remembered(thread):
            changed.append(turn)
    Turn.objects.bulk_update(changed, ["answer", "model", "completed_at", "revision"])
    return changed


def _extend_known(thread: Thread, every: Sequence[DatedPair], dated: Sequence[DatedPair]) -> list[Turn]:
    """Add new and edited lines to the messages of known turns of a transcript; return the turns that changed.

    What was edited later than in this export, in an export that was imported before, is not replaced by its former text.
    """
    changed, completed = [], []
    parts: dict[str, list[DatedPair]] = defaultdict(list)
    for item in every:
        parts[part_of(item.pair.id)].append(item)
    known = thread.turns.in_bulk([item.id for id in {part_of(item.pair.id) for item in dated} for item in parts[id]])
    for item in dated:
        turn = known.get(item.id)
        if turn is None or turn.exchange_id is None:
            continue
        part = parts[part_of(item.pair.id)]
        others = [other for other in part if other.id != item.id]
        if _was_edited_later(part, known):
            stored = (known[other.id].message for other in others if other.id in known)
            message = _merge(item.pair.message, turn.message, stored, is_edited=False)
        else:
            exported = (other.pair.message for other in others)
            message = _merge(turn.message, item.pair.message, exported, is_edited=item.pair.edited_at is not None)
        if item.pair.edited_at is not None and _last_edit(turn) < item.pair.edited_at:
            completed.append((turn, item.pair.edited_at))
        if message != turn.message:
            changed.append((turn, message))
    # The texts and times of a part are compared as they were before the import.
    for turn, edited_at in completed:
        turn.completed_at = edited_at
    for turn, message in changed:
        turn.message = message
        turn.revision += 1
    Turn.objects.bulk_update([turn for turn, _message in changed], ["message", "revision"])
    Turn.objects.bulk_update([turn for turn, _edited_at in completed], ["completed_at"])
    return [turn for turn, _message in changed]


def _last_edit(turn: Turn) -> datetime:
    """Return the last edit that was imported; the time of the first message if there was none."""
    return turn.completed_at or turn.created_at


def _was_edited_later(part: Sequence[DatedPair], known: Mapping[uuid.UUID, Turn]) -> bool:
    """Return whether an edit of the part was imported that is later than those in this export."""
    turns = [known[item.id] for item in part if item.id in known]
    edits = [_last_edit(turn) for turn in turns if turn.created_at < _last_edit(turn)]
    return bool(edits) and max(item.answered_at for item in part) < max(edits)


def _merge(former: str, current: str, others: Iterable[str], *, is_edited: bool) -> str:
    """Merge two texts of a part. A former line that is now in one of `others` has moved there.

    A long part is split elsewhere once one of its messages has another length. `others` are the other texts of the part.
    """
    moved = {line for text in others for line in lines_of(text)} - lines_of(current)
    return merge_texts(without_lines(former, moved), current, is_edited=is_edited)


def _mark(thread: Thread, conversation: Conversation, person_id: uuid.UUID) -> None:
    """Pin or archive a new thread as the conversation was."""
    if conversation.is_archived:
        set_archived(thread, person_id, True)
    elif conversation.is_pinned:
        set_pinned(thread, person_id, True)


def _create_turns(
    thread: Thread, session: ThreadSession, every: Sequence[DatedPair], dated: Sequence[DatedPair]
) -> list[Turn]:
    """Create turns with their original dates.

    A turn that continues the active branch is added after the head, because messages can have been written here since.
    Another version of a message or an answer is on a branch that is not active.
    """
    if not dated:
        return []
    last = thread.turns.aggregate(last=Max("position"))["last"]
    begin = 0 if last is None else last + 1
    present = dict(thread.turns.values_list("id", "is_on_active_branch"))
    parents = {item.id: item.parent_id for item in every}
    continued = {_present_parent(item.id, parents, present) for item in every if present.get(item.id)}
    turns: list[Turn] = []
    for position, item in enumerate(dated, start=begin):
        parent_id = _present_parent(item.id, parents, present)
        follows = item.pair.is_active and parent_id not in continued and (parent_id is None or present[parent_id])
        turn = Turn(
            id=item.id,
            thread=thread,
            session=session,
            parent_id=thread.head_id if follows else parent_id,
            is_on_active_branch=follows,
            position=position,
            author_id=thread.owner_id,
            client_key=item.id,
            message=item.pair.message,
            answer=item.pair.answer,
            state=Turn.State.COMPLETE,
            model=item.pair.model[:_MAX_MODEL_LENGTH],
            completed_at=item.answered_at,
        )
        turns.append(turn)
        present[item.id] = follows
        if follows:
            continued.add(parent_id)
            thread.head_id = item.id
    Turn.objects.bulk_create(turns)
    # `auto_now_add` ignores a value given on creation.
    for turn, item in zip(turns, dated, strict=True):
        turn.created_at = item.sent_at
    Turn.objects.bulk_update(turns, ["created_at"])
    for turn, item in zip(turns, dated, strict=True):
        if item.pair.files:
            add_attachments(turn, store_texts(item.pair.files, turn))
    thread.last_message_at = max(thread.last_message_at, *(turn.created_at for turn in turns))
    thread.save(update_fields=["head", "last_message_at"])
    return turns


def _present_parent(
    id: uuid.UUID, parents: Mapping[uuid.UUID, uuid.UUID | None], present: Mapping[uuid.UUID, bool]
) -> uuid.UUID | None:
    """Return the nearest pair before this one that is a turn of the thread: others were forgotten."""
    parent = parents[id]
    while parent is not None and parent not in present:
        parent = parents[parent]
    return parent


def _answered(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.answer.strip()]


def store_exchanges(thread: Thread, session: ThreadSession | None, turns: Sequence[Turn]) -> None:
    """Store or update the exchanges of these turns, if the thread is saved to memory."""
    if not turns or not _is_remembered(thread):
        return
    exchanges = memory.remember_many(
        [
            NewExchange(
                space=thread.space,
                owner_id=turn.author_id,
                user_message=turn.message,
                assistant_message=turn.answer,
                source=Exchange.Source.IMPORT,
                timestamp=turn.created_at,
                thread_id=thread.id,
                session_id=session.id if session else None,
                turn_id=turn.id,
                thread_continuation_seq=session.seq if session else 0,
            )
            for turn in turns
        ]
    )
    for turn, exchange in zip(turns, exchanges, strict=True):
        turn.exchange_id = exchange.id
    Turn.objects.bulk_update(turns, ["exchange_id"])
    prefetch_related_objects(turns, "attachments")
    for turn in turns:
        store_documents(turn, turn.attachments.all())


def _is_remembered(thread: Thread) -> bool:
    return thread.is_remembered and settings.CATO.vector_store.enabled

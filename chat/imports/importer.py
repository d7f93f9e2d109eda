"""Import conversations of other products as threads of a person, with their dates, and store them in memory.

Ids are derived from person, product, conversation and message. So a message is imported once, and its tombstone
prevents that it is imported again after it was forgotten.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.imports.formats import PROVIDERS, cato, conversations
from chat.imports.formats.conversation import UNASKED, Conversation, Pair, Unread, pairs_of
from chat.models import Thread, ThreadSession, Turn
from memory import api as memory
from memory.api import (
    Exchange,
    ExtractionError,
    NewExchange,
    ProgressCallback,
    Space,
    batched,
    excerpt,
    no_progress,
    parse_uuid,
)

_BATCH_SIZE = 50
_LOOKUP_BATCH_SIZE = 500  # databases limit the number of values in a query
_MAX_SKIPPED = 1000
_MAX_TITLE_LENGTH, _MAX_MODEL_LENGTH = 200, 120
_NAMESPACE = uuid.UUID("9d3f6c1e-52a7-5c0b-9a54-6c9f0b7d1a42")


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    `found` counts readable conversations, `imported` those with new `turns`, `already_there` those without. `skipped` has
    title and reason of the first 1000 of `skipped_count`; `left_out` counts parts of conversations without text.
    """

    found: int = 0
    imported: int = 0
    already_there: int = 0
    turns: int = 0
    skipped_count: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def skip(self, title: str, why: str) -> None:
        """Count a conversation that was not, or not completely, imported."""
        self.skipped_count += 1
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append((title, why))


@dataclass(frozen=True, slots=True)
class _DatedPair:
    """A pair with the id and the dates of its turn."""

    id: uuid.UUID
    pair: Pair
    sent_at: datetime
    answered_at: datetime


def import_conversations(
    source: Path | BinaryIO,
    *,
    person_id: uuid.UUID,
    progress: ProgressCallback = no_progress,
    report: ImportReport | None = None,
) -> ImportReport:
    """Import every conversation in `source` (a JSON file, a zip, a folder) into the personal space.

    Commits batches of 50 turns with their exchanges, so that it can be interrupted and repeated. `progress` counts
    "conversations" and "turns"; `report` is updated meanwhile. Raises InvalidInputError if `source` cannot be opened, and
    ExtractionError if it is damaged as a whole or contains no conversation.
    """
    report = ImportReport() if report is None else report
    space = memory.personal_space(person_id)
    for conversation in conversations(source):
        if isinstance(conversation, Unread):
            report.skip(conversation.title, conversation.why)
        else:
            report.found += 1
            _import_one(conversation, space, person_id, report, progress)
        progress("conversations", 1)
    if not report.found and not report.skipped_count:
        sentence = _("There are no conversations in it. What can be read: exports of %(providers)s.")
        raise ExtractionError(sentence % {"providers": ", ".join(PROVIDERS)})
    return report


def _import_one(
    conversation: Conversation, space: Space, person_id: uuid.UUID, report: ImportReport, progress: ProgressCallback
) -> None:
    pairs, unasked_count = pairs_of(conversation)
    report.left_out += Counter(conversation.left_out) + Counter({UNASKED: unasked_count})
    title = " ".join(conversation.title.split()) or excerpt(pairs[0].message, 80) or conversation.provider
    thread_id = uuid.uuid5(_NAMESPACE, f"{person_id}/{conversation.provider}/{conversation.id}")
    cato_ids = _cato_ids(conversation, conversation.id)
    if access.readable_threads(person_id).filter(id__in=cato_ids).exists():
        report.already_there += 1
        return
    dated = _date_pairs(conversation, thread_id, pairs)
    forgotten = _forgotten_ids(conversation, dated)
    existing = dict(Thread.objects.filter(id__in=[thread_id, *cato_ids]).values_list("id", "deleted_at"))
    if (forgotten and not existing) or any(existing.values()):
        report.skip(title, _("Skipped: forgotten earlier."))
        return
    new_pairs = [item for item in dated if item.id not in forgotten and not item.pair.is_forgotten]
    if len(new_pairs) < len(dated):
        why = _("Forgotten earlier and left so: %(count)s of %(all)s turns.")
        report.skip(title, why % {"count": len(dated) - len(new_pairs), "all": len(dated)})
    if _is_visible_to_others(thread_id, new_pairs, space):
        report.skip(title, _("Skipped new messages: the thread was moved to another space."))
        return
    saved = 0
    for batch in batched(new_pairs, _BATCH_SIZE):
        count = _save_batch(conversation, title, thread_id, batch, space, person_id)
        saved += count
        report.turns += count
        progress("turns", count)
    report.imported += saved > 0
    report.already_there += bool(new_pairs) and not saved


def _date_pairs(conversation: Conversation, thread_id: uuid.UUID, pairs: Sequence[Pair]) -> list[_DatedPair]:
    """Add ids and dates to the pairs; a message without a date gets that of the previous one."""
    last_at = conversation.created_at or next((pair.said_at for pair in pairs if pair.said_at), None) or timezone.now()
    dated = []
    for pair in pairs:
        sent_at = pair.said_at or last_at
        last_at = pair.answered_at or sent_at
        dated.append(_DatedPair(uuid.uuid5(thread_id, pair.id), pair, sent_at, last_at))
    return dated


def _forgotten_ids(conversation: Conversation, dated: Sequence[_DatedPair]) -> set[uuid.UUID]:
    """Return the ids of the pairs that were forgotten, as imported turns or as the turns that Cato exported."""
    names = {name: item.id for item in dated for name in (item.id, *_cato_ids(conversation, item.pair.id))}
    tombstones = Exchange.objects.exclude(forgotten_at=None).values_list("turn_id", flat=True)
    return {
        names[id] for batch in batched(names, _LOOKUP_BATCH_SIZE) for id in tombstones.filter(turn_id__in=batch) if id
    }


def _cato_ids(conversation: Conversation, id: str) -> list[uuid.UUID]:
    """Return the id that Cato gave this conversation or message, if Cato exported it."""
    if conversation.provider != cato.PROVIDER:
        return []
    parsed = parse_uuid(id)
    return [parsed] if parsed else []


def _is_visible_to_others(thread_id: uuid.UUID, dated: Sequence[_DatedPair], space: Space) -> bool:
    """Return whether new text would be added to a thread that was moved out of the personal space."""
    if not Thread.objects.filter(id=thread_id).exclude(space=space).exists():
        return False
    existing = dict(Turn.objects.filter(thread_id=thread_id).values_list("id", "answer"))
    return any(item.id not in existing or (item.pair.answer and not existing[item.id]) for item in dated)


@transaction.atomic
def _save_batch(
    conversation: Conversation,
    title: str,
    thread_id: uuid.UUID,
    dated: Sequence[_DatedPair],
    space: Space,
    person_id: uuid.UUID,
) -> int:
    """Save the new turns and store their exchanges; return the number of turns created or completed."""
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
    session, _is_new = ThreadSession.objects.get_or_create(
        id=uuid.uuid5(thread_id, "session"),
        defaults={"thread": thread, "seq": 0, "started_by_id": person_id, "started_at": first},
    )
    known = thread.turns.in_bulk([item.id for item in dated])
    changed = _update_known(thread, known, dated)
    written = _create_turns(thread, session, [item for item in dated if item.id not in known])
    _store_exchanges(thread, session, [*changed, *written])
    return len(changed) + len(written)


def _update_known(thread: Thread, known: Mapping[uuid.UUID, Turn], dated: Sequence[_DatedPair]) -> list[Turn]:
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


def _create_turns(thread: Thread, session: ThreadSession, dated: Sequence[_DatedPair]) -> list[Turn]:
    """Create turns at the end of the thread, with their original dates."""
    if not dated:
        return []
    last = thread.turns.aggregate(last=Max("position"))["last"]
    begin = 0 if last is None else last + 1
    turns: list[Turn] = []
    for position, item in enumerate(dated, start=begin):
        turn = Turn(
            id=item.id,
            thread=thread,
            session=session,
            parent_id=turns[-1].id if turns else thread.head_id,
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
    Turn.objects.bulk_create(turns)
    # `auto_now_add` ignores a value given on creation.
    for turn, item in zip(turns, dated, strict=True):
        turn.created_at = item.sent_at
    Turn.objects.bulk_update(turns, ["created_at"])
    thread.head, thread.last_message_at = turns[-1], max(thread.last_message_at, *(turn.created_at for turn in turns))
    thread.save(update_fields=["head", "last_message_at"])
    return turns


def _store_exchanges(thread: Thread, session: ThreadSession, turns: Sequence[Turn]) -> None:
    """Store the exchanges of answered turns on the active branch, if the thread is saved to memory."""
    answered = [turn for turn in turns if turn.answer.strip() and turn.is_on_active_branch]
    if not answered or not _is_remembered(thread):
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
                session_id=session.id,
                turn_id=turn.id,
                thread_continuation_seq=session.seq,
            )
            for turn in answered
        ]
    )
    for turn, exchange in zip(answered, exchanges, strict=True):
        turn.exchange_id = exchange.id
    Turn.objects.bulk_update(answered, ["exchange_id"])


def _is_remembered(thread: Thread) -> bool:
    return thread.is_remembered and settings.CATO.vector_store.enabled

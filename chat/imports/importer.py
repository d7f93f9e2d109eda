"""Importing: conversations held elsewhere become a person's own threads, with their dates, and are remembered.

Ids are made of the person's, the product's, the conversation's and the message's, so the same message is the same turn
whenever it is imported: nothing comes twice, and what was forgotten is known by its tombstone.
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

_TOGETHER = 50
# A database takes some tens of thousands of values in one question.
_ASKED_TOGETHER = 500
_MOST_TOLD = 1000
_LONGEST_TITLE, _LONGEST_MODEL = 200, 120
_NAMES = uuid.UUID("9d3f6c1e-52a7-5c0b-9a54-6c9f0b7d1a42")


@dataclass(slots=True)
class ImportReport:
    """What became of the conversations of a file.

    `found` is how many could be read; of these `imported` gained `turns` here, and `already_there` had nothing new.
    `skipped` are titles with a sentence each, the first 1000 of `passed_over`; `left_out` counts parts of conversations
    of which there is no text.
    """

    found: int = 0
    imported: int = 0
    already_there: int = 0
    turns: int = 0
    skipped_count: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def skip(self, title: str, why: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < _MOST_TOLD:
            self.skipped.append((title, why))


@dataclass(frozen=True, slots=True)
class _DatedPair:
    """A pair on its way to become a turn: under which id, and when it was said and answered."""

    id: uuid.UUID
    pair: Pair
    said_at: datetime
    answered_at: datetime


def import_conversations(
    source: Path | BinaryIO,
    *,
    person_id: uuid.UUID,
    progress: ProgressCallback = no_progress,
    report: ImportReport | None = None,
) -> ImportReport:
    """Take every conversation in `source` (a JSON file, a zip, a folder) into the person's own space.

    Each 50 turns are committed with what is remembered of them; broken off and called again, it goes on. The worker
    embeds them afterwards. `progress` hears of "conversations" and "turns"; `report` is filled meanwhile. Raises
    InvalidInputError where `source` cannot be opened, and ExtractionError where it is damaged as a whole or holds nothing of the kind.
    """
    report = ImportReport() if report is None else report
    space = memory.personal_space(person_id)
    for each in conversations(source):
        if isinstance(each, Unread):
            report.skip(each.title, each.why)
        else:
            report.found += 1
            _take_in(each, space, person_id, report, progress)
        progress("conversations", 1)
    if not report.found and not report.skipped_count:
        sentence = _("There are no conversations in it. What can be read: exports of %(providers)s.")
        raise ExtractionError(sentence % {"providers": ", ".join(PROVIDERS)})
    return report


def _take_in(
    conversation: Conversation, space: Space, person_id: uuid.UUID, report: ImportReport, progress: ProgressCallback
) -> None:
    pairs, unasked = pairs_of(conversation)
    report.left_out += Counter(conversation.left_out) + Counter({UNASKED: unasked})
    title = " ".join(conversation.title.split()) or excerpt(pairs[0].message, 80) or conversation.provider
    thread_id = uuid.uuid5(_NAMES, f"{person_id}/{conversation.provider}/{conversation.id}")
    exported = _own_id(conversation, conversation.id)
    if access.readable_threads(person_id).filter(id__in=exported).exists():
        report.already_there += 1
        return
    arrivals = _arrivals(conversation, thread_id, pairs)
    buried = _buried(conversation, arrivals)
    here = dict(Thread.objects.filter(id__in=[thread_id, *exported]).values_list("id", "deleted_at"))
    if (buried and not here) or any(here.values()):
        report.skip(title, _("Skipped: forgotten earlier."))
        return
    wanted = [arrival for arrival in arrivals if arrival.id not in buried and not arrival.pair.is_forgotten]
    if len(wanted) < len(arrivals):
        why = _("Forgotten earlier and left so: %(count)s of %(all)s turns.")
        report.skip(title, why % {"count": len(arrivals) - len(wanted), "all": len(arrivals)})
    if _would_be_shown_to_others(thread_id, wanted, space):
        report.skip(title, _("Skipped new messages: the thread was moved to another space."))
        return
    gained = 0
    for some in batched(wanted, _TOGETHER):
        count = _keep(conversation, title, thread_id, some, space, person_id)
        gained += count
        report.turns += count
        progress("turns", count)
    report.imported += gained > 0
    report.already_there += bool(wanted) and not gained


def _arrivals(conversation: Conversation, thread_id: uuid.UUID, pairs: Sequence[Pair]) -> list[_DatedPair]:
    """The pairs with their ids and dates; what has no date was said when the message before it was."""
    at = conversation.created_at or next((pair.said_at for pair in pairs if pair.said_at), None) or timezone.now()
    arrivals = []
    for pair in pairs:
        said_at = pair.said_at or at
        at = pair.answered_at or said_at
        arrivals.append(_DatedPair(uuid.uuid5(thread_id, pair.id), pair, said_at, at))
    return arrivals


def _buried(conversation: Conversation, arrivals: Sequence[_DatedPair]) -> set[uuid.UUID]:
    """Those of the arrivals that were forgotten here: as they were imported, or before Cato exported them."""
    names = {name: a.id for a in arrivals for name in (a.id, *_own_id(conversation, a.pair.id))}
    tombstones = Exchange.objects.exclude(forgotten_at=None).values_list("turn_id", flat=True)
    return {names[id] for some in batched(names, _ASKED_TOGETHER) for id in tombstones.filter(turn_id__in=some) if id}


def _own_id(conversation: Conversation, id: str) -> list[uuid.UUID]:
    """The id by which Cato itself may know this; none for what another product kept."""
    if conversation.provider != cato.PROVIDER:
        return []
    parsed = parse_uuid(id)
    return [parsed] if parsed else []


def _would_be_shown_to_others(thread_id: uuid.UUID, arrivals: Sequence[_DatedPair], space: Space) -> bool:
    """Whether something new would go into a thread that no longer lies in the person's own space."""
    if not Thread.objects.filter(id=thread_id).exclude(space=space).exists():
        return False
    here = dict(Turn.objects.filter(thread_id=thread_id).values_list("id", "answer"))
    return any(a.id not in here or (a.pair.answer and not here[a.id]) for a in arrivals)


@transaction.atomic
def _keep(
    conversation: Conversation,
    title: str,
    thread_id: uuid.UUID,
    arrivals: Sequence[_DatedPair],
    space: Space,
    person_id: uuid.UUID,
) -> int:
    """Write what is new of these turns and remember it; returns how many were written or completed."""
    first = arrivals[0].said_at
    thread, is_new = Thread.objects.select_for_update().get_or_create(
        id=thread_id,
        defaults={
            "owner_id": person_id,
            "space": space,
            "title": title[:_LONGEST_TITLE],
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
    known = thread.turns.in_bulk([arrival.id for arrival in arrivals])
    changed = _completed(thread, known, arrivals)
    written = _written(thread, session, [arrival for arrival in arrivals if arrival.id not in known])
    _remember(thread, session, [*changed, *written])
    return len(changed) + len(written)


def _completed(thread: Thread, known: Mapping[uuid.UUID, Turn], arrivals: Sequence[_DatedPair]) -> list[Turn]:
    """Those known turns that get their answer only now, and those that could not be remembered when they came."""
    changed = []
    for arrival in arrivals:
        turn = known.get(arrival.id)
        if turn is None:
            continue
        if arrival.pair.answer and not turn.answer:
            turn.answer, turn.model = arrival.pair.answer, arrival.pair.model[:_LONGEST_MODEL]
            turn.completed_at = arrival.answered_at
            turn.revision += 1
            changed.append(turn)
        elif turn.answer and turn.is_on_active_branch and turn.exchange_id is None and _is_remembered(thread):
            changed.append(turn)
    Turn.objects.bulk_update(changed, ["answer", "model", "completed_at", "revision"])
    return changed


def _written(thread: Thread, session: ThreadSession, arrivals: Sequence[_DatedPair]) -> list[Turn]:
    """New turns at the end of the thread, with the dates at which they were said."""
    if not arrivals:
        return []
    last = thread.turns.aggregate(last=Max("position"))["last"]
    begin = 0 if last is None else last + 1
    turns: list[Turn] = []
    for place, arrival in enumerate(arrivals, start=begin):
        turn = Turn(
            id=arrival.id,
            thread=thread,
            session=session,
            parent_id=turns[-1].id if turns else thread.head_id,
            position=place,
            author_id=thread.owner_id,
            client_key=arrival.id,
            message=arrival.pair.message,
            answer=arrival.pair.answer,
            state=Turn.State.COMPLETE,
            model=arrival.pair.model[:_LONGEST_MODEL],
            completed_at=arrival.answered_at,
        )
        turns.append(turn)
    Turn.objects.bulk_create(turns)
    # The field takes the time of creation as its own, whatever it is given.
    for turn, arrival in zip(turns, arrivals, strict=True):
        turn.created_at = arrival.said_at
    Turn.objects.bulk_update(turns, ["created_at"])
    thread.head, thread.last_message_at = turns[-1], max(thread.last_message_at, *(turn.created_at for turn in turns))
    thread.save(update_fields=["head", "last_message_at"])
    return turns


def _remember(thread: Thread, session: ThreadSession, turns: Sequence[Turn]) -> None:
    """Hand to memory those that stand and have an answer, unless the settings or the conversation say not to."""
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

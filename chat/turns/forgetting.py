"""Forget a turn everywhere: its exchange, its text in every version and copy, and on request the answers that used it."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from chat import access
from chat.attachments import forget_attachments
from chat.errors import ThreadBusyError
from chat.mentions import delete_mentions
from chat.models import Instruction, Receipt, Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.rendering.citations import numbers_in_text
from chat.threads.locks import lock_thread
from memory import api as memory
from memory.api import NotFoundError, RecallLogEntry, excerpt

# Uses of an exchange that are examined; beyond, the counts are incomplete.
_MAX_USES = 1000


@dataclass(frozen=True, slots=True)
class ThreadExports:
    """How often the thread was exported since the message, and by whom and when last."""

    count: int
    by_id: uuid.UUID | None
    by_name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ForgettingScope:
    """The consequences of forgetting an exchange everywhere, as far as the person may know and forget it.

    `turns` are those with its message, `exchange_ids` their exchanges, `answer_ids` the turns with the answers for which
    these were recalled, also if memory does not have them. `is_complete` is False if not all uses were examined.
    """

    turn: Turn
    turns: QuerySet[Turn]
    exchange_ids: Sequence[uuid.UUID]
    passages: int
    statements: int
    citations: int
    answer_ids: Sequence[uuid.UUID]
    exports: ThreadExports | None
    is_complete: bool


def turn_to_forget(person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool) -> Turn:
    """Return the turn of the exchange if this person may forget it everywhere, also if it is forgotten but has its text.

    Raises NotFoundError.
    """
    exchange = access.exchange_to_forget(person_id, exchange_id, is_administrator=is_administrator, is_forgotten=True)
    turn = Turn.objects.select_related("thread").filter(exchange_id=exchange.id).first()
    if turn is None or (exchange.forgotten_at and not turn.message and not turn.answer):
        raise NotFoundError
    return turn


def find_scope(person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool) -> ForgettingScope:
    """Return what forgetting the exchange of a turn everywhere concerns.

    Raises NotFoundError, also if this person may not forget it or it has no turn.
    """
    turn = turn_to_forget(person_id, exchange_id, is_administrator=is_administrator)
    turns = _turns_with_message_of(turn, has_all_rights=is_administrator or turn.author_id == person_id)
    exchange_ids = [id for id in turns.values_list("exchange_id", flat=True) if id is not None]
    statement_ids = memory.statements_supported_by(exchange_ids)
    uses = list(
        # A statement is recalled instead of its sources.
        RecallLogEntry.objects.filter(exchange_id__in=[*exchange_ids, *statement_ids])
        .exclude(turn_id__in=turns.values("id"))
        .order_by("-at")
        .values_list("turn_id", "rank")[: _MAX_USES + 1]
    )
    numbers: dict[uuid.UUID, set[int]] = defaultdict(set)
    for turn_id, rank in uses[:_MAX_USES]:
        numbers[turn_id].add(rank)
    using = list(
        Turn.objects.filter(id__in=numbers, thread__in=access.readable_threads(person_id)).select_related("thread")
    )
    own = [t for t in using if is_administrator or person_id in (t.author_id, t.thread.owner_id)]
    return ForgettingScope(
        turn=turn,
        turns=turns,
        exchange_ids=exchange_ids,
        passages=memory.count_vectors(exchange_ids),
        statements=len(statement_ids),
        citations=sum(len(numbers[t.id] & numbers_in_text(t.answer)) for t in using),
        answer_ids=sorted(t.id for t in own if t.message or t.answer),
        exports=_exports_of(turn, person_id),
        is_complete=len(uses) <= _MAX_USES,
    )


@transaction.atomic
def forget_everywhere(
    person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool, with_answers: bool
) -> Receipt:
    """Forget the exchange of a turn and delete its text, also in copies and in versions with the same message.

    `with_answers`: do the same with the answers for which it, or a statement from it, was recalled. Raises NotFoundError
    as `find_scope` does, and ThreadBusyError while one of these turns is being answered.
    """
    scope = find_scope(person_id, exchange_id, is_administrator=is_administrator)
    answer_ids = scope.answer_ids if with_answers else ()
    answers = Turn.objects.filter(id__in=answer_ids).values_list("id", "exchange_id")
    # A copy of a turn without an exchange names the turn instead.
    copied_ids = {*scope.exchange_ids, *chain.from_iterable(answers)} - {None}
    turns = Turn.objects.filter(
        Q(id__in=scope.turns.values("id")) | Q(id__in=answer_ids) | Q(copied_exchange_id__in=copied_ids)
    )
    threads = [lock_thread(id) for id in sorted(set(turns.values_list("thread_id", flat=True)))]
    found = list(turns)
    if any(turn.is_running or turn.state == Turn.State.QUEUED for turn in found):
        raise ThreadBusyError
    # A copy of an answer that ended early can have been tried again, and has an exchange of its own then.
    ids = sorted({*scope.exchange_ids, *(turn.exchange_id for turn in found if turn.exchange_id is not None)})
    passages = memory.count_vectors(ids)
    memory.forget(ids, by=person_id)
    _delete_titles(threads, found)
    _delete_texts(found, by=person_id)
    for thread in threads:
        notify_thread_changed(thread.id)
    return Receipt.objects.create(
        person_id=person_id,
        turn_id=scope.turn.id,
        exchange_ids=[str(id) for id in ids],
        passages=passages,
        citations=scope.citations,
    )


def receipts_of(person_id: uuid.UUID) -> QuerySet[Receipt]:
    """Return the receipts of this person, newest first."""
    return Receipt.objects.filter(person_id=person_id).order_by("-created_at", "id")


def delete_receipts_of(person_id: uuid.UUID) -> None:
    """Delete the receipts of this person."""
    Receipt.objects.filter(person_id=person_id).delete()


def _turns_with_message_of(turn: Turn, *, has_all_rights: bool) -> QuerySet[Turn]:
    """Return the turn, its regenerated versions, which repeat its message, and their copies in forks.

    A copy of a turn that had no exchange yet does not name one; it has the author, text and date of the original.
    `has_all_rights`: for the author and administrators, also the original of a copy, and what was answered again in forks.
    """
    copies = Q(created_at=turn.created_at)
    if not has_all_rights:
        # A fork is newer than the messages that it copies.
        copies &= Q(exchange_id=None, thread__created_at__gt=turn.created_at)
    versions = Q(thread_id=turn.thread_id, parent_id=turn.parent_id)
    return Turn.objects.filter(versions | copies, author_id=turn.author_id, message=turn.message)


def _exports_of(turn: Turn, person_id: uuid.UUID) -> ThreadExports | None:
    """Return the exports of the turn's thread since its message; None if there are none or the thread is not readable."""
    if not access.readable_threads(person_id).filter(id=turn.thread_id).exists():
        return None
    entries = apps.get_model(settings.AUDIT_ENTRY_MODEL).objects.filter(
        action="thread.exported", target__startswith=f"{turn.thread_id} ", at__gt=turn.created_at
    )
    last = entries.select_related("actor").order_by("-at").first()
    if last is None:
        return None
    return ThreadExports(entries.count(), last.actor_id, last.actor.name if last.actor else "", last.at)


def _delete_titles(threads: Iterable[Thread], turns: Iterable[Turn]) -> None:
    """Replace the titles that come from first messages among these turns, also those that copied threads took over."""
    first = {turn.thread_id: turn for turn in turns if turn.parent_id is None}
    written = {excerpt(turn.message, 80) for turn in first.values()} | {
        thread.title for thread in threads if thread.id in first and thread.title_source != Thread.TitleSource.USER
    }
    Thread.objects.filter(id__in=first, title__in=written).update(title=_("Untitled thread"))
    Thread.objects.filter(id__in=first).update(opening_hash="")


def _delete_texts(turns: Sequence[Turn], *, by: uuid.UUID) -> None:
    """Delete what was written, attached, requested, answered and recalled in these turns.

    The turns stay, as the history of their threads.
    """
    ids = [turn.id for turn in turns]
    forget_attachments(turns, by=by)
    delete_mentions(turns)
    # Those of turns without an exchange are not deleted with it.
    Instruction.objects.filter(turn__in=ids).delete()
    memory.delete_recall_log(ids)
    # Complete: an answer that ended early could be retried or resumed.
    Turn.objects.filter(id__in=ids).update(
        message="",
        answer="",
        reasoning="",
        generation_options={},
        tool_messages=[],
        memory_searches=[],
        tool_uses=[],
        web_search={},
        state=Turn.State.COMPLETE,
        finish_reason="",
        error="",
        error_code="",
        endpoint_reason={},
        applied_instructions=[],
        has_instruction=False,
        is_correction=False,
    )

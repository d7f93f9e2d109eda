"""The state of what a prompt is to contain at the moment when it is built: what was forgotten or moved, what applies."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Case, Exists, OuterRef, Subquery, UUIDField, Value, When

from chat.answers.job import AnswerJob
from chat.instructions.applying import AppliedInstruction, applicable, choose, read_all_applicable
from chat.models import Thread, ThreadSession
from chat.rows.thread_titles import session_title
from memory import api as memory
from memory.api import Exchange, Hit

# Instead of the number of a session, for the rows of instructions among those of exchanges.
_INSTRUCTION = -1


@dataclass(frozen=True, slots=True)
class PresentState:
    """The present state of exchanges: which are forgotten, which the audience can find, and their threads' titles.

    `instructions` are those of the prompt as it is now, `withheld_instructions` counts those that the endpoint may not
    receive.
    """

    forgotten_ids: frozenset[uuid.UUID]
    findable_ids: frozenset[uuid.UUID]
    titles: dict[uuid.UUID, str]
    instructions: tuple[AppliedInstruction, ...]
    withheld_instructions: int = 0


def check_present_state(job: AnswerJob, exchange_ids: Iterable[uuid.UUID], hits: Iterable[Hit]) -> PresentState:
    """Check the exchanges of the history and the hits, with one statement.

    The statement also reads the titles of the hits, and the instructions that apply in the turn's thread.
    """
    turn, permitted = job.turn, job.permitted
    ids = {*exchange_ids, *(hit.exchange.id for hit in hits)}
    if not ids:
        return PresentState(
            frozenset(), frozenset(), {}, *_choose(job, read_all_applicable(turn.thread, besides=turn.id))
        )
    columns = ("id", "space_id", "forgotten_at", "is_hidden", "thread_id", "session_id", "title", "seq")
    # Somebody of the audience can have lost a space during the recall.
    is_readable = Exists(memory.audience_spaces(turn.thread.space).filter(id=OuterRef("space_id")))
    exchanges = Exchange.objects.filter(id__in=ids).annotate(
        is_hidden=Case(When(is_readable, then="is_inactive"), default=True),
        title=Subquery(Thread.objects.filter(id=OuterRef("thread_id")).values("title")),
        seq=Subquery(ThreadSession.objects.filter(id=OuterRef("session_id")).values("seq")),
    )
    # The same columns for an instruction: its date and its text, and no session for its place.
    instructions = applicable(turn.thread, besides=turn.id).annotate(
        is_hidden=Value(False),
        in_thread=Value(None, output_field=UUIDField()),
        in_session=Value(None, output_field=UUIDField()),
        place=Value(_INSTRUCTION),
    )
    rows = exchanges.values_list(*columns).union(
        instructions.values_list(
            "id", "space_id", "created_at", "is_hidden", "in_thread", "in_session", "text", "place"
        ),
        all=True,
    )
    forgotten, findable, titles = set(), set(), dict[uuid.UUID, str]()
    applying = []
    for id, space_id, at, is_hidden, thread_id, session_id, title, seq in rows:
        if seq == _INSTRUCTION:
            applying.append(AppliedInstruction(id, space_id, title, at))
            continue
        if at is not None:
            forgotten.add(id)
        elif not is_hidden and space_id in permitted:
            findable.add(id)
        if thread_id and title is not None:
            titles[thread_id] = title
            if seq:
                titles[session_id] = session_title(title, seq)
    return PresentState(frozenset(forgotten), frozenset(findable), titles, *_choose(job, applying))


def _choose(job: AnswerJob, applying: list[AppliedInstruction]) -> tuple[tuple[AppliedInstruction, ...], int]:
    """Return the instructions for the prompt, and how many the endpoint may not receive."""
    permitted = job.permitted_among(frozenset(row.space_id for row in applying))
    sent = [row for row in applying if row.space_id in permitted]
    return choose(sent, space_id=job.turn.thread.space_id), len(applying) - len(sent)

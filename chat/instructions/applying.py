"""Which instructions apply in a thread, and how they are written in its prompts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast

from chat.models import Instruction, Thread, Turn
from memory.api import Exchange, Space, estimate_tokens

MAX_TOKENS = 600
_HEADING = "Follow these standing instructions in every answer:"
State = Instruction.State


@dataclass(frozen=True, slots=True)
class AppliedInstruction:
    """An instruction in a prompt; `space_id` is that of a person, a group or the team, whose come last."""

    id: uuid.UUID
    space_id: uuid.UUID
    text: str
    created_at: datetime
    edited_at: datetime | None = None


def of_thread(thread: Thread) -> Q:
    """Return the condition of the instructions that everyone who reads this thread may read: its space's and the team's.

    A person's are in their personal space, so they are those of their personal threads only.
    """
    return Q(space_id=thread.space_id) | Q(space__kind=Space.Kind.TEAM)


def applicable(thread: Thread, *, besides: uuid.UUID | None = None) -> QuerySet[Instruction]:
    """Return the instructions that apply in this thread, not ordered, besides the one in the message of a turn.

    What was recognised in a message stops applying while no version of the message is on the active branch, the one that is
    shown was forgotten, or its thread is deleted.
    """
    forgotten = Exchange.objects.filter(id=OuterRef("exchange_id")).exclude(forgotten_at=None)
    # A regenerated version repeats the message with its date.
    fields = ("thread", "created_at", "author", "message")
    shown = Turn.objects.filter(is_on_active_branch=True, **{name: OuterRef(f"turn__{name}") for name in fields})
    shown = shown.filter(~Exists(forgotten)).exclude(id__in=[besides] if besides else [])
    recognised = Q(Exists(shown), state=State.RECOGNISED, turn__thread__deleted_at=None)
    rows = Instruction.objects.present().filter(of_thread(thread), Q(state=State.KEPT) | recognised, off_at=None)
    rows = rows.exclude(id__in=thread.disabled_instructions).order_by()
    return rows if besides is None else rows.exclude(turn_id=besides)


def choose(instructions: Iterable[AppliedInstruction], *, space_id: uuid.UUID) -> tuple[AppliedInstruction, ...]:
    """Return the newest instructions that fit into the budget, in an order in which new ones change little.

    Those of the thread's space come first, then the team's, each from the oldest to the newest.
    """
    remaining, chosen = MAX_TOKENS - estimate_tokens(_HEADING), list[AppliedInstruction]()
    for instruction in sorted(instructions, key=lambda row: (row.created_at, row.id), reverse=True):
        cost = estimate_tokens(_line(instruction.text))
        if cost <= remaining:
            remaining -= cost
            chosen.append(instruction)
    return tuple(sorted(chosen, key=lambda row: (row.space_id != space_id, row.created_at, row.id)))


def read_applicable(thread: Thread) -> tuple[AppliedInstruction, ...]:
    """Return the instructions of the next prompt in this thread, with one statement."""
    return choose(read_all_applicable(thread), space_id=thread.space_id)


def read_all_applicable(thread: Thread, *, besides: uuid.UUID | None = None) -> list[AppliedInstruction]:
    """Return all instructions that apply in this thread, with one statement; `besides` as for `applicable`."""
    rows = applicable(thread, besides=besides).values_list("id", "space_id", "text", "created_at")
    return [AppliedInstruction(*row) for row in rows]


def prompt_text(instructions: Sequence[AppliedInstruction]) -> str:
    """Return the part of the system prompt with these instructions, "" without any."""
    return "\n".join([_HEADING, *(_line(row.text) for row in instructions)]) if instructions else ""


def _line(text: str) -> str:
    return f"- {text}"


def applied_to(thread: Thread, turns: Iterable[Turn]) -> dict[str, AppliedInstruction]:
    """Return the instructions in the prompts of these turns by their ids as text, with at most one statement.

    Those that not everyone who reads the thread now may read are left out, such as a person's after a move.
    """
    ids = {id for turn in turns for id in turn.applied_instructions}
    if not ids:
        return {}
    rows = Instruction.objects.present().filter(of_thread(thread), id__in=ids)
    columns = rows.order_by().values_list("id", "space_id", "text", "created_at", "edited_at")
    return {str(row[0]): AppliedInstruction(*row) for row in columns}


def count_answers(space: Space, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Return, for each of these instructions of a space, how many complete answers it applied to."""
    turns = Turn.objects.filter(state=Turn.State.COMPLETE).exclude(applied_instructions=[])
    if space.kind != Space.Kind.TEAM:
        turns = turns.filter(thread__space=space)
    # One pass over the turns for all of them. SQLite cannot look into a list, so it is searched as a text.
    counts = turns.annotate(in_prompt=Cast("applied_instructions", TextField())).aggregate(
        **{f"of_{id.hex}": Count("pk", filter=Q(in_prompt__contains=str(id))) for id in ids}
    )
    return {id: counts[f"of_{id.hex}"] for id in ids}

"""What the composer shows about the queued messages of a thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.models import Turn
from chat.rows.turns import ActiveTurn
from chat.turns.queue import can_move_up
from memory.api import excerpt, format_number

_EXCERPT = 200  # characters; the row is one line


@dataclass(frozen=True, slots=True)
class QueuedRow:
    """A queued message, and what its author may do with it; `move_url` is "" if it cannot be moved up.

    `announcement` is what a screen reader says once it was moved.
    """

    id: uuid.UUID
    author_id: uuid.UUID
    text: str
    announcement: str
    move_url: str
    edit_url: str
    withdraw_url: str


class Waiting(NamedTuple):
    """The running turn of a thread and its queued messages; `queue` is None where pages show the right one already."""

    active: ActiveTurn | None
    queue: list[QueuedRow] | None

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> Waiting:
        """Return the rows of those of these turns (loaded with their authors, in their order) that wait for an answer."""
        turns = list(turns)
        return cls(next((ActiveTurn.of(turn) for turn in turns if turn.is_running), None), queue_rows(turns))


def queue_rows(turns: Iterable[Turn]) -> list[QueuedRow]:
    """Return the rows of the queued ones of these turns, which are in the order of the thread."""
    queued = [turn for turn in turns if turn.state == Turn.State.QUEUED]
    return [_row(turn, index + 1, can_move=can_move_up(queued, index)) for index, turn in enumerate(queued)]


def queue_for_reader(rows: Sequence[QueuedRow], person_id: uuid.UUID) -> list[QueuedRow]:
    """Return the rows without what would be refused to this person."""
    return [
        row if row.author_id == person_id else replace(row, move_url="", edit_url="", withdraw_url="") for row in rows
    ]


def queue_announcement(position: int) -> str:
    """Return what a screen reader says about the place of a message in the queue; the first is 1."""
    return _("Queued, position %(position)s") % {"position": format_number(position)}


def _row(turn: Turn, position: int, *, can_move: bool) -> QueuedRow:
    args = [turn.thread_id, turn.id]
    return QueuedRow(
        id=turn.id,
        author_id=turn.author_id,
        text=excerpt(turn.message, _EXCERPT),
        announcement=queue_announcement(position),
        move_url=reverse("move_up_turn", args=args) if can_move else "",
        edit_url=reverse("edit_queued_turn", args=args),
        withdraw_url=reverse("withdraw_turn", args=args),
    )

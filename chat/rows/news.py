"""Where the news of a thread begin for a reader who comes back to it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chat.models import Turn


@dataclass(frozen=True, slots=True)
class News:
    """The first turn that the reader has not read, and when they last visited the thread."""

    turn_id: uuid.UUID
    visited_at: datetime


def find_news(thread: Any, turns: Sequence[Turn], person_id: uuid.UUID) -> News | None:
    """Return the first unread one of these turns by somebody else; None if there is none, or on the first visit.

    `thread` has the marks of the reader from before this visit.
    """
    if thread.read_at is None:
        return None
    visited_at = max(thread.read_at, thread.present_at or thread.read_at)
    for turn in turns:
        if turn.author_id != person_id and (turn.completed_at or turn.created_at) > visited_at:
            return News(turn.id, visited_at)
    return None

"""Answers that cite a passage."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable

from chat import access
from chat.models import Turn
from chat.rendering.citations import numbers_in_text
from memory.api import RecallLogEntry

# Recalls that are examined, the newest first.
_MAX_RECALLS = 1000


def count_citing_answers(person_id: uuid.UUID, exchange_ids: Iterable[uuid.UUID]) -> int:
    """Return how many answers in threads that this person can read cite one of these exchanges of a passage."""
    recalls = RecallLogEntry.objects.filter(exchange_id__in=list(exchange_ids)).order_by("-at")
    numbers: dict[uuid.UUID, set[int]] = defaultdict(set)
    for turn_id, number in recalls.values_list("turn_id", "rank")[:_MAX_RECALLS]:
        numbers[turn_id].add(number)
    turns = Turn.objects.active_branch().filter(id__in=list(numbers), thread__in=access.readable_threads(person_id))
    answers = turns.values_list("id", "answer")
    return sum(bool(numbers[turn_id] & numbers_in_text(answer)) for turn_id, answer in answers)

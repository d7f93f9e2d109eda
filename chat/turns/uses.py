"""Answers that cite a passage, and answers for which an exchange was recalled."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Count, QuerySet

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
    answers = _readable_turns(person_id).filter(id__in=list(numbers)).values_list("id", "answer")
    return sum(bool(numbers[turn_id] & numbers_in_text(answer)) for turn_id, answer in answers)


def answers_recalling(person_id: uuid.UUID, exchange_id: uuid.UUID) -> QuerySet[Turn]:
    """Return the turns of threads that this person can read for whose answers the exchange was recalled, newest first."""
    recalls = RecallLogEntry.objects.filter(exchange_id=exchange_id)
    turns = _readable_turns(person_id).filter(id__in=recalls.values("turn_id"))
    return turns.select_related("thread").order_by("-created_at", "id")


def count_answers_recalling(person_id: uuid.UUID, exchange_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Return the number of `answers_recalling` of each of these exchanges that has any."""
    recalls = RecallLogEntry.objects.filter(
        exchange_id__in=list(exchange_ids), turn_id__in=_readable_turns(person_id).values("id")
    )
    return dict(recalls.values_list("exchange_id").annotate(n=Count("turn_id")))


def _readable_turns(person_id: uuid.UUID) -> QuerySet[Turn]:
    return Turn.objects.active_branch().filter(thread__in=access.readable_threads(person_id))

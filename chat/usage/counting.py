"""Adds what requests used to the usage of the day.

An answer stores what it used in its own row, in the statements that write it anyway; a title does so in the row of its
thread. Nothing is lost if a process dies. `count_ended_answers` moves these counts to the days with each sweep, and the
services that delete the rows or begin an answer anew do so before. Limits also count what is not moved yet.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from chat.llm.usage_counts import UsageCounts
from chat.models import Thread, Turn, UsageDay
from chat.usage.prices import cost_of, prices_by_model
from memory.api import parse_uuid

_BATCH_SIZE = 500
_SUMMED = (
    "requests", "prompt_tokens", "cached_tokens", "completion_tokens", "estimated_tokens", "unpriced_tokens", "cost",
)  # fmt: skip
Purpose = UsageDay.Purpose


@dataclass(frozen=True, slots=True)
class UsageKey:
    """The owner and kind of usage: a row of `UsageDay` without its counts."""

    date: date
    purpose: str
    model: str
    person_id: uuid.UUID | None = None
    space_id: uuid.UUID | None = None
    api_token_id: uuid.UUID | None = None


def usage_date(at: datetime | None = None) -> date:
    """Return the day, in UTC, to which the usage of this time belongs; None: now."""
    return (at or timezone.now()).astimezone(UTC).date()


def month_start() -> date:
    """Return the first day of this month, in UTC."""
    return usage_date().replace(day=1)


def next_month(day: date) -> date:
    """Return the first day of the month after this one."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def count_usage(
    counts: UsageCounts | None,
    *,
    purpose: Purpose,
    person_id: uuid.UUID | None = None,
    space_id: uuid.UUID | None = None,
    api_token_id: uuid.UUID | None = None,
) -> None:
    """Add the usage of requests that belong to no turn to that of today."""
    if counts is not None:
        _add({UsageKey(usage_date(), purpose, counts.model, person_id, space_id, api_token_id): counts})


def title_usage(counts: UsageCounts | None, api_token_id: uuid.UUID | None) -> dict[str, Any] | None:
    """Return what the row of a thread stores of the request for its title."""
    return None if counts is None else counts.as_json() | {"api_token_id": api_token_id and str(api_token_id)}


def count_ended_answers() -> int:
    """Add the stored usage of answers that have ended, and of titles, to the days; return the number of rows."""
    count = 0
    while True:
        # Rows that another process has locked are left to it.
        rows = _count(Turn.objects.all(), Thread.objects.all(), limit=_BATCH_SIZE, skips_locked=True)
        count += rows
        if rows < _BATCH_SIZE:
            return count


def count_before_deletion(turns: QuerySet[Turn], threads: QuerySet[Thread] | None = None) -> None:
    """Add the stored usage of these turns, and of the titles of these threads, before it is deleted or overwritten."""
    _count(turns, Thread.objects.none() if threads is None else threads)


def uncounted_usage(
    person_id: uuid.UUID | None, space_id: uuid.UUID | None, api_token_id: uuid.UUID | None
) -> list[tuple[UsageKey, UsageCounts]]:
    """Return the stored usage of this person, this space or this token, also of answers in progress; changes nothing."""
    ids = {"author_id": person_id, "thread__space_id": space_id, "api_token_id": api_token_id}
    of_turn = Q(*((name, id) for name, id in ids.items() if id is not None), _connector=Q.OR)
    of_thread = Q(owner_id=person_id) | Q(space_id=space_id)
    turns = _stored_of_turns(Turn.objects.filter(of_turn))
    return [*map(_usage_of_turn, turns), *map(_usage_of_title, _stored_of_titles(Thread.objects.filter(of_thread)))]


@transaction.atomic
def _count(
    of_turns: QuerySet[Turn], of_threads: QuerySet[Thread], *, limit: int | None = None, skips_locked: bool = False
) -> int:
    """Add stored usage to the days, and return the larger number of turns or threads.

    Locks are taken in the order turns, threads, days, each in a fixed order, so that counts wait for each other.
    """
    ended = _stored_of_turns(of_turns).exclude(state__in=Turn.RUNNING_STATES)
    turns = list(ended.select_for_update(of=("self",), skip_locked=skips_locked)[:limit])
    titled = _stored_of_titles(of_threads)
    threads = list(titled.select_for_update(of=("self",), skip_locked=skips_locked)[:limit])
    sums: dict[UsageKey, UsageCounts] = {}
    for key, counts in [*map(_usage_of_turn, turns), *map(_usage_of_title, threads)]:
        sums[key] = sums[key] + counts if key in sums else counts
    if sums:
        _add(sums)
        Turn.objects.filter(id__in=[turn.id for turn in turns]).update(uncounted_usage=None)
        Thread.objects.filter(id__in=[thread.id for thread in threads]).update(uncounted_title=None)
    return max(len(turns), len(threads))


def _stored_of_turns(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Return those of the turns with uncounted usage, without their texts."""
    fields = ("uncounted_usage", "completed_at", "author_id", "api_token_id", "thread__space_id")
    return turns.filter(uncounted_usage__isnull=False).select_related("thread").only(*fields).order_by("id")


def _stored_of_titles(threads: QuerySet[Thread]) -> QuerySet[Thread]:
    """Return those of the threads with uncounted usage of a title."""
    return threads.filter(uncounted_title__isnull=False).only("uncounted_title", "owner_id", "space_id").order_by("id")


def _usage_of_turn(turn: Turn) -> tuple[UsageKey, UsageCounts]:
    counts = UsageCounts(**(turn.uncounted_usage or {}))
    owner = (turn.author_id, turn.thread.space_id, turn.api_token_id)
    return UsageKey(usage_date(turn.completed_at), Purpose.ANSWER, counts.model, *owner), counts


def _usage_of_title(thread: Thread) -> tuple[UsageKey, UsageCounts]:
    stored = dict(thread.uncounted_title or {})
    token_id = parse_uuid(stored.pop("api_token_id") or "")
    counts = UsageCounts(**stored)
    return UsageKey(usage_date(), Purpose.TITLE, counts.model, thread.owner_id, thread.space_id, token_id), counts


@transaction.atomic
def _add(sums: dict[UsageKey, UsageCounts]) -> None:
    prices = prices_by_model()
    # In an order that is the same in every process, since the rows are locked.
    for key in sorted(sums, key=repr):
        counts = sums[key]
        cost = cost_of(counts, prices.get(key.model))
        amounts: dict[str, int | Decimal] = {name: getattr(counts, name) for name in _SUMMED if hasattr(counts, name)}
        amounts |= {"unpriced_tokens": counts.tokens if cost is None else 0, "cost": cost or Decimal(0)}
        _increment(key, amounts)


def _increment(key: UsageKey, amounts: dict[str, int | Decimal]) -> None:
    increments = {name: F(name) + amount for name, amount in amounts.items()}
    UsageDay.objects.update_or_create(**asdict(key), defaults=increments, create_defaults=amounts)


@transaction.atomic
def remove_person(person_id: uuid.UUID, *, personal_space_id: uuid.UUID) -> None:
    """Remove a person from the usage, which remains in the sums: rows that differ in nothing else become one."""
    of_person = UsageDay.objects.filter(Q(person_id=person_id) | Q(space_id=personal_space_id))
    sums: dict[UsageKey, dict[str, int | Decimal]] = defaultdict(dict)
    for row in of_person.select_for_update().order_by("id"):
        space_id = None if row.space_id == personal_space_id else row.space_id
        amounts = sums[UsageKey(row.date, row.purpose, row.model, None, space_id)]
        for name in _SUMMED:
            amounts[name] = amounts.get(name, 0) + getattr(row, name)
    of_person.delete()
    for key in sorted(sums, key=repr):
        _increment(key, sums[key])

"""The log of recalled exchanges per turn: ids and reasons, without texts. Reading it needs the readable spaces."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from memory.documents.locations import locations_of
from memory.models import Exchange, RecallLogEntry
from memory.retrieval.passages import group_adjacent
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces.access import SpaceIds, in_spaces


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """One item of a recall panel; `exchange` is None if it was forgotten or is not readable.

    `later_id` is the latest message on the same subject among the items of the panel, None if it is this one.
    """

    exchange_id: uuid.UUID
    rank: int
    similarity: float | None
    score: float
    strategy: str
    explanation: str
    exchange: ExchangeView | None
    is_forgotten: bool
    later_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class RecallRate:
    """The number of newest answers examined, and the number of those with recalled exchanges."""

    answers: int
    with_context: int


def log_recall(turn_id: uuid.UUID, results: Sequence[Hit], *, is_first: bool = False) -> list[RecalledItem]:
    """Replace the log of this turn with `results`, best first, in one transaction; return it as `recalled_for` does.

    Each row gets the number of its passage as its rank. `is_first`: the turn has no log yet.
    """
    items = [
        RecalledItem(
            exchange_id=result.exchange.id,
            rank=rank,
            similarity=result.similarity,
            score=result.score,
            strategy=result.strategy,
            explanation=result.explanation[:300],
            exchange=result.exchange,
            is_forgotten=False,
            later_id=result.later,
        )
        for rank, group in enumerate(group_adjacent(results), start=1)
        for result in group
    ]
    with transaction.atomic(savepoint=False):
        if not is_first:
            RecallLogEntry.objects.filter(turn_id=turn_id).delete()
        RecallLogEntry.objects.bulk_create(
            [
                RecallLogEntry(
                    turn_id=turn_id,
                    exchange_id=item.exchange_id,
                    rank=item.rank,
                    similarity=item.similarity,
                    score=item.score,
                    strategy=item.strategy,
                    reason=item.explanation,
                    later_id=item.later_id,
                )
                for item in items
            ]
        )
    return items


def delete_recall_log(turn_ids: Iterable[uuid.UUID]) -> None:
    """Delete the logs of these deleted turns."""
    RecallLogEntry.objects.filter(turn_id__in=list(turn_ids)).delete()


def recalled_for(turn_ids: Iterable[uuid.UUID], *, spaces: SpaceIds) -> dict[uuid.UUID, list[RecalledItem]]:
    """Return the recalled items per turn, in rank order.

    Items that are forgotten, hidden or outside `spaces` have no text.
    """
    found: dict[uuid.UUID, list[RecalledItem]] = defaultdict(list)
    rows = (
        RecallLogEntry.objects.filter(turn_id__in=list(turn_ids))
        .select_related("exchange__owner")
        .order_by("rank", "id")
    )
    locations = locations_of(row.exchange_id for row in rows if row.exchange.source_file)
    for row in rows:
        forgotten = row.exchange.forgotten_at is not None
        readable = row.exchange.space_id in spaces and not forgotten and not row.exchange.is_inactive
        found[row.turn_id].append(
            RecalledItem(
                exchange_id=row.exchange_id,
                rank=row.rank,
                similarity=row.similarity,
                score=row.score,
                strategy=row.strategy,
                explanation=row.reason,
                exchange=ExchangeView.from_row(row.exchange, locations.get(row.exchange_id)) if readable else None,
                is_forgotten=forgotten,
                later_id=row.later_id,
            )
        )
    return found


def recall_counts(exchange_ids: Iterable[uuid.UUID], *, spaces: SpaceIds) -> dict[uuid.UUID, int]:
    """Return how often each exchange was recalled for turns whose own exchange is in `spaces`.

    Turns in other spaces are not counted, because the number would reveal that somebody asked there.
    """
    readable_turns = in_spaces(Exchange.objects.findable().filter(turn_id=OuterRef("turn_id")), spaces)
    rows = RecallLogEntry.objects.filter(Exists(readable_turns), exchange_id__in=list(exchange_ids))
    return dict(rows.values_list("exchange_id").annotate(n=Count("id")))


def recall_rate(spaces: SpaceIds | None, *, newest: int = 1000) -> RecallRate:
    """Return the recall rate of the `newest` answers in `spaces`; None stands for all spaces."""
    answers: QuerySet[Exchange] = Exchange.objects.findable().filter(turn_id__isnull=False)
    answers = answers if spaces is None else in_spaces(answers, spaces)
    rows = answers.order_by("-timestamp").values_list("turn_id", flat=True)[:newest]
    turns = [turn_id for turn_id in rows if turn_id is not None]
    recalled = RecallLogEntry.objects.filter(turn_id__in=turns).values("turn_id").distinct().count()
    return RecallRate(answers=len(turns), with_context=recalled)

"""The log of recalled exchanges per turn: ids and reasons, without texts. Reading it needs the readable spaces."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from memory.documents.locations import locations_of
from memory.models import Exchange, RecallLogEntry
from memory.retrieval.passages import build_passage, group_adjacent
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces.access import SpaceIds, in_spaces

_MAX_REASON = 300  # characters


@dataclass(frozen=True, slots=True)
class RecalledPassage:
    """One item of a recall panel: an exchange, or adjacent chunks of a document that were quoted as one passage.

    `exchange_ids` are those of all its exchanges, the best hit first. `exchanges` are the readable ones, in the order of
    the document; none if the passage was forgotten or is not readable. Similarity, score and explanation are those of the
    best of them. `later_id` is the latest message on the same subject among the items of the panel, None if it is this
    one.
    """

    number: int
    exchange_ids: tuple[uuid.UUID, ...]
    similarity: float | None
    score: float
    strategy: str
    explanation: str
    exchanges: tuple[ExchangeView, ...]
    is_forgotten: bool
    later_id: uuid.UUID | None = None

    @property
    def exchange_id(self) -> uuid.UUID:
        """Return the id of the best hit, by which pages and programs name the passage."""
        return self.exchange_ids[0]

    @property
    def exchange(self) -> ExchangeView | None:
        """Return the best hit of its exchanges that are readable, None if none is."""
        readable = {exchange.id: exchange for exchange in self.exchanges}
        return next((readable[id] for id in self.exchange_ids if id in readable), None)

    @property
    def message(self) -> str:
        """Return the text of the message, or of the chunks; "" if it is not readable."""
        if len(self.exchanges) > 1:
            return build_passage(self.number, self.exchanges).text
        return self.exchanges[0].user_message if self.exchanges else ""

    @property
    def answer(self) -> str:
        """Return the text of the answer; "" for a note or a chunk, and if it is not readable."""
        return self.exchanges[0].assistant_message if self.exchanges else ""


@dataclass(frozen=True, slots=True)
class RecallRate:
    """The number of newest answers examined, and the number of those with recalled exchanges."""

    answers: int
    with_context: int


def log_recall(turn_id: uuid.UUID, results: Sequence[Hit], *, is_first: bool = False) -> list[RecalledPassage]:
    """Replace the log of this turn with `results`, best first, in one transaction; return it as `recalled_for` does.

    Each row gets the number of its passage as its rank. `is_first`: the turn has no log yet.
    """
    with transaction.atomic(savepoint=False):
        if not is_first:
            RecallLogEntry.objects.filter(turn_id=turn_id).delete()
        return extend_recall_log(turn_id, results, first_number=1)


def extend_recall_log(turn_id: uuid.UUID, results: Sequence[Hit], *, first_number: int) -> list[RecalledPassage]:
    """Add `results`, best first, to the log of this turn as passages numbered from `first_number`; return these."""
    rows: list[RecallLogEntry] = []
    passages: list[RecalledPassage] = []
    for number, group in enumerate(group_adjacent(results), start=first_number):
        entries = [
            RecallLogEntry(
                turn_id=turn_id,
                exchange_id=result.exchange.id,
                rank=number,
                similarity=result.similarity,
                score=result.score,
                strategy=result.strategy,
                reason=result.explanation[:_MAX_REASON],
                later_id=result.later,
            )
            for result in group
        ]
        rows += entries
        passages.append(_passage([_part(row, result.exchange) for row, result in zip(entries, group, strict=True)]))
    RecallLogEntry.objects.bulk_create(rows)
    return passages


def delete_recall_log(turn_ids: Iterable[uuid.UUID]) -> None:
    """Delete the logs of these deleted turns."""
    RecallLogEntry.objects.filter(turn_id__in=list(turn_ids)).delete()


def recalled_for(turn_ids: Iterable[uuid.UUID], *, spaces: SpaceIds) -> dict[uuid.UUID, list[RecalledPassage]]:
    """Return the recalled passages per turn, by their numbers.

    Exchanges that are forgotten, hidden or outside `spaces` have no text. Messages of another branch have theirs: regenerating
    an answer changes the citations of no other.
    """
    found: dict[uuid.UUID, dict[int, list[RecalledPassage]]] = defaultdict(lambda: defaultdict(list))
    rows = (
        RecallLogEntry.objects.filter(turn_id__in=list(turn_ids))
        .select_related("exchange__owner", "exchange__statement")
        .order_by("rank", "id")
    )
    locations = locations_of(row.exchange_id for row in rows if row.exchange.source_file)
    for row in rows:
        forgotten = row.exchange.forgotten_at is not None
        is_hidden = row.exchange.is_inactive and not row.exchange.is_citable
        readable = row.exchange.space_id in spaces and not forgotten and not is_hidden
        view = ExchangeView.from_row(row.exchange, locations.get(row.exchange_id)) if readable else None
        found[row.turn_id][row.rank].append(_part(row, view, is_forgotten=forgotten))
    return {turn_id: [_passage(parts) for parts in passages.values()] for turn_id, passages in found.items()}


def logged_hits(turn_id: uuid.UUID, *, spaces: SpaceIds) -> dict[int, list[Hit]]:
    """Return what was recalled for this turn and is still readable in `spaces`: the hits of each passage, by its number."""
    return {
        passage.number: [
            Hit(
                exchange,
                passage.similarity,
                passage.score,
                passage.strategy,
                passage.explanation,
                is_below_gate=False,
                later=passage.later_id,
            )
            for exchange in passage.exchanges
        ]
        for passage in recalled_for([turn_id], spaces=spaces).get(turn_id, [])
        if passage.exchanges
    }


def _part(row: RecallLogEntry, view: ExchangeView | None, *, is_forgotten: bool = False) -> RecalledPassage:
    """Return one exchange as a part of its passage; without a view, the part has no text."""
    return RecalledPassage(
        number=row.rank,
        exchange_ids=(row.exchange_id,),
        similarity=row.similarity,
        score=row.score,
        strategy=row.strategy,
        explanation=row.reason,
        exchanges=(view,) if view else (),
        is_forgotten=is_forgotten,
        later_id=row.later_id,
    )


def _passage(parts: Sequence[RecalledPassage]) -> RecalledPassage:
    """Return the passage that consists of these exchanges, best first, with the reasons for the best readable one."""
    exchanges = [exchange for part in parts for exchange in part.exchanges]
    return replace(
        next((part for part in parts if part.exchanges), parts[0]),
        exchange_ids=tuple(part.exchange_id for part in parts),
        exchanges=tuple(sorted(exchanges, key=lambda exchange: exchange.location.index if exchange.location else 0)),
        is_forgotten=all(part.is_forgotten for part in parts),
    )


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

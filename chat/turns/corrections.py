"""Corrections: a message that says what an answer stated is outdated, and which of its sources it supersedes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from chat import access
from chat.models import Turn
from chat.rendering.citations import numbers_in_text
from memory import api as memory
from memory.api import Exchange, NotFoundError, RecalledPassage

_MAX_SOURCES = 3


@dataclass(frozen=True, slots=True)
class CorrectedSource:
    """A source of the answer before a correction; `is_superseded`: its author decided that the correction supersedes it."""

    passage: RecalledPassage
    is_superseded: bool


def can_be_correction(turn: Turn, earlier: Sequence[Turn]) -> bool:
    """Return whether the message of this turn could correct a source of the answer before it.

    Its author typed it, it is saved to memory, and the last of the `earlier` answers cites something.
    """
    return bool(turn.is_typed and turn.thread.is_remembered and earlier and numbers_in_text(earlier[-1].answer))


def corrected_sources(turn: Turn) -> list[CorrectedSource]:
    """Return what the answer before this turn cites and the author of the turn can still read, at most three sources.

    Without the exchange of the turn, which was forgotten or is not stored yet, there are none.
    """
    try:
        later = _exchange_of(turn)
    except NotFoundError:
        return []
    passages = _cited_passages(turn, later)
    ids = [exchange.id for passage in passages for exchange in passage.exchanges]
    decisions = memory.decisions_of(turn.author_id, ids)
    return [
        CorrectedSource(passage, all(decisions.get((later.id, exchange.id)) for exchange in passage.exchanges))
        for passage in passages
    ]


@transaction.atomic
def supersede_source(turn: Turn, number: int, *, is_superseded: bool) -> None:
    """Let this turn supersede a source of the answer before it, for its author, or undo that. Raises NotFoundError."""
    later = _exchange_of(turn)
    passage = next((passage for passage in _cited_passages(turn, later) if passage.number == number), None)
    if passage is None:
        raise NotFoundError
    for earlier in Exchange.objects.filter(id__in=[exchange.id for exchange in passage.exchanges]):
        decision = memory.CONFIRMED if is_superseded else ""
        memory.decide_supersession(turn.author_id, later=later, earlier=earlier, decision=decision)


def dismiss(turn: Turn) -> None:
    """Offer nothing for this turn any more."""
    turn.is_correction = False
    turn.save(update_fields=["is_correction"])


def _exchange_of(turn: Turn) -> Exchange:
    """Return the exchange of the turn as its author finds it. Raises NotFoundError."""
    if turn.effective_exchange_id is None:
        raise NotFoundError
    return access.get_exchange(turn.author_id, turn.effective_exchange_id)


def _cited_passages(turn: Turn, later: Exchange) -> list[RecalledPassage]:
    """Return the readable passages, all of them earlier than this exchange, that the answer before the turn cites."""
    if turn.parent is None:
        return []
    cited = numbers_in_text(turn.parent.answer)
    spaces = memory.readable_space_ids(turn.author_id)
    passages = memory.recalled_for([turn.parent.id], spaces=spaces).get(turn.parent.id, [])
    return [
        passage
        for passage in passages
        if passage.number in cited
        and passage.exchanges
        and all(exchange.timestamp < later.timestamp for exchange in passage.exchanges)
    ][:_MAX_SOURCES]

"""Rows of receipts, and of what a person is told before they forget a turn everywhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Receipt
from chat.turns.forgetting import ForgettingScope, ThreadExports, receipts_of
from memory import api as memory
from memory.api import day_text, format_number


@dataclass(frozen=True, slots=True)
class FactRow:
    """A line of a receipt or dialog: a label, and a figure or a time."""

    label: str
    figure: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A receipt, for the person who forgot something.

    `is_open`: not everything is erased yet. `delay` says that an erasure failed, and `next_attempt` when it is tried again.
    """

    id: uuid.UUID
    short_id: str
    created_at: datetime
    lines: Sequence[FactRow]
    is_open: bool
    delay: str
    next_attempt: datetime | None


def scope_lines(scope: ForgettingScope, *, person_id: uuid.UUID) -> list[FactRow]:
    """Return what will be forgotten, by kind; kinds of which there is nothing are left out."""
    counts = [
        (_("This exchange, including its text"), 1),
        (_("Other versions of it"), len(scope.exchange_ids) - 1),
        (_("Its passages in the search index"), scope.passages),
        (_("Statements based on it"), scope.statements),
        (_("Citations in later answers that will be empty"), scope.citations),
    ]
    lines = [FactRow(label, format_number(count)) for label, count in counts if count > 0]
    if scope.exports is not None:
        label = _("Exports that contain it; Cato cannot erase them")
        lines.append(FactRow(label, _exports_text(scope.exports, person_id)))
    return lines


def erased_by(forgotten_at: datetime) -> datetime:
    """Return until when what was forgotten at this time is erased from the files."""
    return forgotten_at + timedelta(hours=settings.CATO.vector_store.erase_within_hours)


def receipt_row(receipt: Receipt) -> ReceiptRow:
    """Return the row of a receipt, with the state of its erasure now."""
    ids = [uuid.UUID(id) for id in receipt.exchange_ids]
    state = memory.receipt_for(ids)
    is_open = bool(state.under_way or state.in_files)
    next_attempt = memory.next_erasure_attempt(ids) if state.under_way else None
    is_late = is_open and erased_by(receipt.created_at) < timezone.now()
    has_failed = bool(state.failed or next_attempt or is_late)
    lines = [FactRow(_("Forgotten"), _forgotten_text(len(ids), receipt.passages))]
    if state.statements:
        lines.append(FactRow(_("Statements forgotten"), format_number(state.statements)))
    if receipt.citations:
        lines.append(FactRow(_("Citations in later answers, now empty"), format_number(receipt.citations)))
    lines.append(FactRow(_("Removed from search and recall"), at=receipt.created_at))
    if is_open:
        lines.append(FactRow(_("Erased from disk by"), at=erased_by(receipt.created_at)))
    else:
        lines.append(FactRow(_("Erased from disk"), _("yes")))
    return ReceiptRow(
        id=receipt.id,
        short_id=receipt.id.hex[:4],
        created_at=receipt.created_at,
        lines=lines,
        is_open=is_open,
        delay=_delay_text(has_failed, next_attempt),
        next_attempt=next_attempt,
    )


def receipts_at_turns(
    person_id: uuid.UUID, turn_ids: Iterable[uuid.UUID], *, shown_id: uuid.UUID | None
) -> dict[uuid.UUID, ReceiptRow]:
    """Return the last receipt of this person at each turn while it is open, and the one with `shown_id` in any case."""
    rows = receipts_of(person_id).filter(turn_id__in=list(turn_ids)).reverse()
    found = {receipt.turn_id: receipt_row(receipt) for receipt in rows}
    return {turn_id: row for turn_id, row in found.items() if row.is_open or row.id == shown_id}


def _forgotten_text(exchanges: int, passages: int) -> str:
    text = ngettext("%(count)s exchange", "%(count)s exchanges", exchanges) % {"count": format_number(exchanges)}
    if not passages:
        return text
    parts = ngettext("%(count)s passage", "%(count)s passages", passages) % {"count": format_number(passages)}
    return f"{text}, {parts}"


def _exports_text(exports: ThreadExports, person_id: uuid.UUID) -> str:
    # Day and month never break across lines.
    day = day_text(exports.at).replace(" ", "\N{NO-BREAK SPACE}")
    facts = {"count": format_number(exports.count), "name": exports.by_name, "date": day}
    if exports.by_id == person_id:
        return ngettext("1, by you on %(date)s", "%(count)s, last by you on %(date)s", exports.count) % facts
    return ngettext("1, by %(name)s on %(date)s", "%(count)s, last by %(name)s on %(date)s", exports.count) % facts


def _delay_text(has_failed: bool, next_attempt: datetime | None) -> str:
    if not has_failed:
        return ""
    if next_attempt is not None:
        return _("Removed from search, not yet erased from disk. Next attempt")
    return _("Removed from search, not yet erased from disk. An administrator can retry it.")

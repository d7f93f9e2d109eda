"""The summary of what was recalled for a turn: how much, how much of it the answer cites, and from when it is."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.models import Turn
from chat.rendering.citations import Citations, Source
from chat.rows.explanations import dates_text, source_name
from chat.rows.recall import RecallItemRow
from memory.api import RecalledPassage

_NOTES = {
    Turn.RECALL_SKIPPED: gettext_noop("Recall timed out; answered without memory"),
    "failed": gettext_noop("Recall failed; answered without memory"),
    "words": gettext_noop("Search index unavailable; recalled by keyword only"),
    "date": gettext_noop("The newest of that time, listed by date"),
    "nothing": gettext_noop("Nothing was remembered in that time"),
}


@dataclass(frozen=True, slots=True)
class RecallSummaryRow:
    """The summary line of a recall panel.

    `count` is the number of passages. Once the answer is complete, `cited` has the numbers of those that it cites, in
    order, `based_on` is the number of those that are not forgotten, and `others` that of the rest; before, all are empty.
    `dates_text` is the period of the cited ones.
    """

    count: int
    is_complete: bool
    cited: Sequence[int] = ()
    based_on: int = 0
    others: int = 0
    dates_text: str = ""
    note: str = ""
    is_timed_out: bool = False


@dataclass(frozen=True, slots=True)
class RecallPanelRow:
    """The recall panel of a turn: the summary, the cited items (all of them before the answer is complete), the others."""

    summary: RecallSummaryRow
    items: Sequence[RecallItemRow]
    others: Sequence[RecallItemRow]


def citations_of(
    turn_id: uuid.UUID,
    passages: Iterable[RecalledPassage],
    titles: Mapping[uuid.UUID, str],
    *,
    is_quoted: bool = True,
) -> Citations:
    """Return what the answer of this turn can cite; `is_quoted`: the passages are in its prompt.

    `titles` are those of `thread_titles`.
    """
    sources = {
        passage.number: Source(
            passage.exchange_id,
            source_name(passage.exchange, titles) if passage.exchange else "",
            passage.exchange.timestamp if passage.exchange else None,
            passage.is_forgotten,
        )
        for passage in passages
    }
    return Citations(turn_id, sources, is_quoted)


def summary_row(turn: Turn, citations: Citations, cited: Sequence[int]) -> RecallSummaryRow:
    """Return the summary line; `cited` are the numbers of the passages that the answer cites, in order."""
    note = _(_NOTES[turn.recall_note]) if turn.recall_note in _NOTES else ""
    count = len(citations.sources)
    if turn.is_running or turn.state == Turn.State.QUEUED:
        return RecallSummaryRow(count, is_complete=False, note=note)
    dates = dates_text([at for number in cited if (at := citations.sources[number].at)])
    based_on = sum(not citations.sources[number].is_forgotten for number in cited)
    is_timed_out = turn.recall_note == Turn.RECALL_SKIPPED
    return RecallSummaryRow(count, True, cited, based_on, count - len(cited), dates, note, is_timed_out)


def panel_row(summary: RecallSummaryRow, items: Sequence[RecallItemRow]) -> RecallPanelRow | None:
    """Return the panel with these items, the cited ones in the order of their citations; None if there is none."""
    if not items and not summary.note:
        return None
    if not summary.is_complete:
        return RecallPanelRow(summary, items, ())
    by_number = {item.number: item for item in items}
    cited = [by_number[number] for number in summary.cited]
    return RecallPanelRow(summary, cited, [item for item in items if item.number not in summary.cited])

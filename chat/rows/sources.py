"""The summary of the sources of a turn, recalled or found: how many, how many the answer cites, and from when they are."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.models import Turn
from chat.rendering.citations import Citations, Source
from chat.rows.explanations import dates_text, source_name
from chat.rows.recall import RecallItemRow
from chat.rows.web_search import WebSourceRow
from chat.web_search.records import WebSearch
from memory.api import RecalledPassage, format_number

_NOTES = {
    Turn.RECALL_SKIPPED: gettext_noop("Recall timed out; answered without memory"),
    "failed": gettext_noop("Recall failed; answered without memory"),
    "words": gettext_noop("Search index unavailable; recalled by keyword only"),
    "unsent": gettext_noop("The embedding provider may not receive this text; recalled by keyword only"),
    "date": gettext_noop("The newest of that time, listed by date"),
    "nothing": gettext_noop("Nothing was remembered in that time"),
}


@dataclass(frozen=True, slots=True)
class RecallSummaryRow:
    """The summary line of a recall panel.

    `count` is the number of passages. Once the answer is complete, `cited` has the numbers of those that it cites, in
    order, `based_on` is the number of those that are not forgotten, and `others` that of the rest; before, all are empty.
    `dates_text` is the period of the cited ones. `has_web`: some are pages of the web.
    """

    count: int
    is_complete: bool
    cited: Sequence[int] = ()
    based_on: int = 0
    others: int = 0
    dates_text: str = ""
    note: str = ""
    is_timed_out: bool = False
    has_web: bool = False

    @property
    def count_text(self) -> str:
        """How many sources there are, and whether the complete answer cites none of them."""
        if self.is_complete and not self.cited:
            text = ngettext("%(count)s recalled, none cited", "%(count)s recalled, none cited", self.count)
            if self.has_web:
                text = ngettext("%(count)s found, none cited", "%(count)s found, none cited", self.count)
        else:
            text = ngettext("%(count)s recalled", "%(count)s recalled", self.count)
            if self.has_web:
                text = ngettext("%(count)s found", "%(count)s found", self.count)
        return text % {"count": format_number(self.count)}

    @property
    def others_text(self) -> str:
        """How many sources the complete answer does not cite."""
        text = ngettext("%(count)s more recalled", "%(count)s more recalled", self.others)
        if self.has_web:
            text = ngettext("%(count)s more found", "%(count)s more found", self.others)
        return text % {"count": format_number(self.others)}


@dataclass(frozen=True, slots=True)
class RecallPanelRow:
    """The recall panel of a turn: the summary, the cited items (all of them before the answer is complete), the others."""

    summary: RecallSummaryRow
    items: Sequence[RecallItemRow | WebSourceRow]
    others: Sequence[RecallItemRow | WebSourceRow]


def citations_of(
    turn_id: uuid.UUID,
    passages: Iterable[RecalledPassage],
    titles: Mapping[uuid.UUID, str],
    web_search: WebSearch | None = None,
    *,
    is_quoted: bool = True,
) -> Citations:
    """Return what the answer of this turn can cite; `is_quoted`: the passages, or the pages found, are in its prompt.

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
    for page in web_search.sources if web_search else ():
        sources[page.number] = Source(page.item_id, page.title, page.published_at)
    return Citations(turn_id, sources, is_quoted)


def summary_row(turn: Turn, citations: Citations, cited: Sequence[int]) -> RecallSummaryRow:
    """Return the summary line; `cited` are the numbers of the passages that the answer cites, in order."""
    note = _(_NOTES[turn.recall_note]) if turn.recall_note in _NOTES else ""
    count = len(citations.sources)
    has_web = bool(turn.web_search and turn.web_search["sources"])
    if turn.is_running or turn.state == Turn.State.QUEUED:
        return RecallSummaryRow(count, is_complete=False, note=note, has_web=has_web)
    dates = dates_text([at for number in cited if (at := citations.sources[number].at)])
    based_on = sum(not citations.sources[number].is_forgotten for number in cited)
    is_timed_out = turn.recall_note == Turn.RECALL_SKIPPED
    others = count - len(cited)
    return RecallSummaryRow(count, True, cited, based_on, others, dates, note, is_timed_out, has_web)


def panel_row(summary: RecallSummaryRow, items: Sequence[RecallItemRow | WebSourceRow]) -> RecallPanelRow | None:
    """Return the panel with these items, the cited ones in the order of their citations; None if there is none."""
    if not items and not summary.note:
        return None
    if not summary.is_complete:
        return RecallPanelRow(summary, items, ())
    by_number = {item.number: item for item in items}
    cited = [by_number[number] for number in summary.cited]
    return RecallPanelRow(summary, cited, [item for item in items if item.number not in summary.cited])

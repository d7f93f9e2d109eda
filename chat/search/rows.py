"""Rows of the search page: hits in the chosen order, and what to try if there are none."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chat.rows.receipts import FactRow
from chat.rows.thread_titles import thread_titles
from memory.api import (
    Exchange,
    ExchangeView,
    Hit,
    Space,
    TextPart,
    exchange_url,
    format_number,
    format_similarity,
    marked_excerpt,
    source_label,
)

MOST_COUNTED = 10_000  # exchanges that a search covered
_TITLE_LENGTH = 90
_EXCERPT_LENGTH = 320
_STATES = {
    "current": gettext_lazy("Current statement"),
    "superseded": gettext_lazy("Superseded statement"),
    "conflicting": gettext_lazy("Conflicting statement"),
}
RELEVANCE = "relevance"
ORDERS = {RELEVANCE: gettext_lazy("Relevance"), "newest": gettext_lazy("Newest"), "oldest": gettext_lazy("Oldest")}


@dataclass(frozen=True, slots=True)
class HitRow:
    """One hit of a search; `bar` is its similarity from 0 to 20. `thread` is the thread's title if it is another text.

    `passages` are the hits right after it that are in the same document, and `passages_text` says how many there are with it.
    """

    id: uuid.UUID
    said_at: datetime
    title: list[TextPart]
    excerpt: list[TextPart]
    explanation: str
    similarity_text: str
    bar: int
    is_below_gate: bool
    attribution: str
    thread: str
    space_name: str
    space_kind: str
    url: str
    passages: Sequence[HitRow] = ()
    passages_text: str = ""


def in_order(hits: Sequence[Hit], order: str) -> list[Hit]:
    """Return the hits by relevance, newest or oldest first."""
    if order == RELEVANCE:
        return list(hits)
    return sorted(hits, key=lambda hit: hit.exchange.timestamp, reverse=order == "newest")


def count_text(count: int, order: str, *, is_cut: bool) -> str:
    """Return how many hits there are, and their order unless it is by relevance; `is_cut`: more were found."""
    text = ngettext("%(count)s result", "%(count)s results", count) % {"count": count}
    if is_cut:
        text = _("The %(count)s best results") % {"count": count}
    orders = {"newest": _("%(results)s, newest first"), "oldest": _("%(results)s, oldest first")}
    return orders[order] % {"results": text} if order in orders else text


def listed_count_text(count: int, *, is_cut: bool) -> str:
    """Return how many exchanges a list has, which are not ranked; `is_cut`: there are more."""
    text = ngettext("%(count)s result", "%(count)s results", count) % {"count": format_number(count)}
    if is_cut:
        text = _("More than %(count)s results") % {"count": format_number(count)}
    return _("%(results)s, newest first") % {"results": text}


def hit_rows(hits: Sequence[Hit], query: str) -> list[HitRow]:
    """Return the hits as rows: the title is the message, the excerpt the answer, the note or the passage.

    Hits in one document that follow each other are one row.
    """
    spaces = Space.objects.in_bulk({hit.exchange.space_id for hit in hits})
    titles = thread_titles(hit.exchange for hit in hits)
    rows = []
    for _group, grouped in groupby(hits, _group_key):
        first, *others = (_hit_row(hit, query, spaces[hit.exchange.space_id], titles) for hit in grouped)
        if others:
            count = len(others) + 1
            text = ngettext("%(count)s passage", "%(count)s passages", count) % {"count": count}
            first = replace(first, passages=tuple(others), passages_text=text)
        rows.append(first)
    return rows


def search_figures(
    *,
    searched: int,
    readable: int,
    min_similarity: float | None,
    similarities: Sequence[float],
    unindexed: int,
    is_lexical_only: bool,
) -> list[FactRow]:
    """Return what a search without relevant hits covered, and how near its best match came."""
    figures = {"searched": _counted(searched), "readable": _counted(readable)}
    of_all = ngettext(
        "%(searched)s of %(readable)s memory you can read",
        "%(searched)s of %(readable)s memories you can read",
        readable,
    )
    rows = [FactRow(_("Searched"), of_all % figures)]
    if min_similarity is not None:
        rows.append(FactRow(_("Minimum similarity"), format_similarity(min_similarity)))
    if similarities:
        best = max(similarities)
        is_too_low = min_similarity is not None and best < min_similarity
        label = _("Best match, below the minimum") if is_too_low else _("Best match, below the relevance threshold")
        rows.append(FactRow(label, format_similarity(best)))
    index = _("up to date")
    if is_lexical_only:
        index = _("unavailable: keyword matches only")
    elif unindexed:
        behind = ngettext("%(count)s memory not indexed yet", "%(count)s memories not indexed yet", unindexed)
        index = behind % {"count": format_number(unindexed)}
    return [*rows, FactRow(_("Search index"), index)]


def _counted(count: int) -> str:
    more = _("more than %(count)s") % {"count": format_number(MOST_COUNTED)}
    return format_number(count) if count <= MOST_COUNTED else more


def _group_key(hit: Hit) -> uuid.UUID:
    """Return the document of a passage, else the exchange itself."""
    return hit.exchange.location.document_id if hit.exchange.location else hit.exchange.id


def _hit_row(hit: Hit, query: str, space: Space, titles: Mapping[uuid.UUID, str]) -> HitRow:
    exchange = hit.exchange
    title = titles.get(exchange.thread_id, "") if exchange.thread_id else ""
    return HitRow(
        id=exchange.id,
        said_at=exchange.timestamp,
        title=marked_excerpt(_title(exchange), query, _TITLE_LENGTH),
        excerpt=marked_excerpt(exchange.assistant_message or exchange.user_message, query, _EXCERPT_LENGTH),
        explanation=hit.explanation,
        similarity_text=format_similarity(hit.similarity) if hit.similarity is not None else "",
        bar=round(20 * min(1.0, max(0.0, hit.similarity or 0.0))),
        is_below_gate=hit.is_below_gate,
        attribution=_attribution(exchange),
        thread=title if title != exchange.user_message else "",
        space_name=space.display_name,
        space_kind=space.kind,
        url=exchange_url(exchange),
    )


def _title(exchange: ExchangeView) -> str:
    if exchange.assistant_message:
        return exchange.user_message
    return exchange.source_file or (_("Knowledge") if exchange.statement_state else _("Note"))


def _attribution(exchange: ExchangeView) -> str:
    """Return the place in a document, or who said, noted or added the text and how."""
    if exchange.location and exchange.location.label:
        return exchange.location.label
    if exchange.statement_state:
        return str(_STATES[exchange.statement_state])
    sentences: dict[str, str] = {
        Exchange.Source.CHAT: _("Said by %(name)s"),
        Exchange.Source.NOTE: _("Noted by %(name)s"),
    }
    sentence = sentences.get(exchange.source, "%(name)s, %(source)s")
    return sentence % {"name": exchange.owner_name, "source": source_label(exchange.source)}

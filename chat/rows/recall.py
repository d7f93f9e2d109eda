"""What memory gives as the pages show it: the items of a recall panel and of a command's results."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from chat import access
from chat.models import Thread, ThreadSession, Turn
from memory import api as memory
from memory.api import (
    Exchange,
    ExchangeFeedback,
    ExchangeView,
    Hit,
    RecalledItem,
    excerpt,
    exchange_url,
    feedback_for_exchanges,
    format_similarity,
    strip_inline_markdown,
)
from memory.api import locations_of as places_in_documents


@dataclass(frozen=True, slots=True)
class RecallItemRow:
    """One item of a panel. From `standing` on all is one person's, and empty in what is drawn once for everybody."""

    number: int
    exchange_id: uuid.UUID
    is_forgotten: bool
    is_below_gate: bool
    excerpt: str
    message_excerpt: str
    answer_excerpt: str
    text: str
    who: str
    said_at: datetime | None
    place: str
    similarity_text: str
    is_keyword_match: bool
    bar: int
    reason: str
    url: str
    standing: ExchangeFeedback | None = None
    anchor: str = ""
    opinion_url: str = ""
    forget_url: str = ""


def row_of_exchange(row: Exchange, number: int) -> RecallItemRow:
    """An exchange (loaded with its owner) as such an item, without any nearness."""
    said = ExchangeView.from_row(row, places_in_documents([row.id]).get(row.id))
    return item_row(number=number, exchange=said, similarity=None, reason="", titles=titles_of([said]), is_hit=False)


def result_rows(results: Iterable[Hit]) -> list[RecallItemRow]:
    """Search results as the same items a recall panel shows."""
    found = list(results)
    titles = titles_of(result.exchange for result in found)
    return [
        item_row(
            number=number,
            exchange=result.exchange,
            similarity=result.similarity,
            reason=result.reason,
            titles=titles,
            below_gate=result.is_below_gate,
        )
        for number, result in enumerate(found, start=1)
    ]


def item_row(
    *,
    number: int,
    exchange: ExchangeView | None,
    similarity: float | None,
    reason: str,
    titles: dict[uuid.UUID, str],
    exchange_id: uuid.UUID | None = None,
    below_gate: bool = False,
    is_hit: bool = True,
) -> RecallItemRow:
    """One item; without its exchange where that was forgotten or may no longer be read."""
    said = "" if exchange is None else "\n".join(filter(None, (exchange.user_message, exchange.assistant_message)))
    shown = exchange is not None
    key = exchange.id if exchange else exchange_id or uuid.UUID(int=0)
    return RecallItemRow(
        number=number,
        exchange_id=key,
        is_forgotten=not shown,
        is_below_gate=below_gate,
        excerpt=excerpt(said),
        message_excerpt=excerpt(exchange.user_message) if exchange else "",
        answer_excerpt=excerpt(exchange.assistant_message) if exchange else "",
        text=strip_inline_markdown(said[:2000]),
        who=exchange.owner_name if exchange else "",
        said_at=exchange.timestamp if exchange else None,
        place=_place(exchange, titles),
        similarity_text=format_similarity(similarity) if shown and similarity is not None else "",
        is_keyword_match=shown and is_hit and similarity is None,
        bar=round(20 * min(1.0, max(0.0, similarity or 0.0))),
        reason=reason if shown else "",
        url=exchange_url(exchange) if exchange else reverse("exchange", args=[key]),
    )


def recalled_row(item: RecalledItem, titles: dict[uuid.UUID, str]) -> RecallItemRow:
    """One item of a turn's panel, as everyone who reads the thread sees it."""
    return item_row(
        number=item.rank,
        exchange=item.exchange,
        similarity=item.similarity,
        reason=item.reason,
        titles=titles,
        exchange_id=item.exchange_id,
    )


def own_rows(turn: Turn, person_id: uuid.UUID, *, is_administrator: bool) -> list[RecallItemRow]:
    """The items of this turn's panel as one person has them: what they think of each, and what they may forget."""
    recalled = memory.recalled_for([turn.id], spaces=memory.space_ids_shared_by_all_readers(turn.thread.space_id))
    titles = places_of(recalled)
    items = recalled.get(turn.id, [])
    exchanges = Exchange.objects.in_bulk([item.exchange_id for item in items if item.exchange])
    known = feedback_for_exchanges(person_id, exchanges, spaces=memory.readable_space_ids(person_id))
    rows = [recalled_row(item, titles) for item in items]

    def own(row: RecallItemRow) -> RecallItemRow:
        exchange = exchanges.get(row.exchange_id)
        if exchange is None:
            return row
        anchor = f"turn-{turn.id}-r{row.exchange_id}"
        query = urlencode({"at": anchor, "next": f"{reverse('recalled', args=[turn.id])}#{anchor}"})
        may = access.can_forget(person_id, exchange, is_administrator=is_administrator)
        return replace(
            row,
            standing=known[exchange.id],
            anchor=anchor,
            opinion_url=f"{reverse('opinion', args=[exchange.id])}?{query}",
            forget_url=reverse("forget", args=[exchange.id]) if may else "",
        )

    return [own(row) for row in rows]


def _place(exchange: ExchangeView | None, titles: dict[uuid.UUID, str]) -> str:
    if exchange is None:
        return ""
    if exchange.thread_id:
        return titles.get(exchange.session_id or exchange.thread_id) or titles.get(exchange.thread_id, "")
    if exchange.place and exchange.place.label:
        return f"{exchange.source_file}, {exchange.place.label}"
    return exchange.source_file or pgettext("in a place", "a note")


def places_of(recalled: dict[uuid.UUID, list[RecalledItem]]) -> dict[uuid.UUID, str]:
    """The titles of the threads in which recalled exchanges were said."""
    return titles_of(item.exchange for items in recalled.values() for item in items if item.exchange)


def titles_of(exchanges: Iterable[ExchangeView]) -> dict[uuid.UUID, str]:
    """The titles of the threads in which these were said, by thread; of a later session with its number, by session."""
    exchanges = list(exchanges)
    titles = dict(
        Thread.objects.filter(id__in={e.thread_id for e in exchanges if e.thread_id}).values_list("id", "title")
    )
    later = ThreadSession.objects.filter(id__in={e.session_id for e in exchanges if e.session_id}, seq__gt=0)
    for id, thread_id, seq in later.values_list("id", "thread_id", "seq"):
        facts = {"title": titles.get(thread_id, ""), "number": seq + 1}
        titles[id] = _("%(title)s, session %(number)s") % facts
    return titles

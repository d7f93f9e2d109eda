"""What memory gives as the pages show it: the items of a recall panel and of a command's results."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from chat.models import Thread
from memory.retrieval.results import Remembered, Result
from memory.services.recalls import Recalled
from memory.text import excerpt, plain


@dataclass(frozen=True, slots=True)
class ItemRow:
    number: int
    exchange_id: uuid.UUID
    is_forgotten: bool
    is_below_gate: bool
    excerpt: str
    text: str
    who: str
    said_at: datetime | None
    place: str
    similarity_text: str
    bar: int
    reason: str
    url: str
    forget_url: str


def result_rows(results: Iterable[Result]) -> list[ItemRow]:
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
    exchange: Remembered | None,
    similarity: float | None,
    reason: str,
    titles: dict[uuid.UUID, str],
    exchange_id: uuid.UUID | None = None,
    below_gate: bool = False,
) -> ItemRow:
    """One item; without its exchange where that was forgotten or may no longer be read."""
    said = "" if exchange is None else "\n".join(filter(None, (exchange.user_message, exchange.assistant_message)))
    shown = exchange is not None
    key = exchange.id if exchange else exchange_id or uuid.UUID(int=0)
    return ItemRow(
        number=number,
        exchange_id=key,
        is_forgotten=not shown,
        is_below_gate=below_gate,
        excerpt=excerpt(said),
        text=plain(said[:2000]),
        who=exchange.owner_name if exchange else "",
        said_at=exchange.timestamp if exchange else None,
        place=_place(exchange, titles),
        similarity_text=f"{similarity:.2f}".replace("0.", ".", 1) if shown and similarity is not None else "",
        bar=round(20 * min(1.0, max(0.0, similarity or 0.0))),
        reason=reason if shown else "",
        url=reverse("exchange", args=[key]),
        forget_url=reverse("forget", args=[key]) if shown else "",
    )


def _place(exchange: Remembered | None, titles: dict[uuid.UUID, str]) -> str:
    if exchange is None:
        return ""
    if exchange.thread_id:
        return titles.get(exchange.thread_id, "")
    return exchange.source_file or "a note"


def places_of(recalled: dict[uuid.UUID, list[Recalled]]) -> dict[uuid.UUID, str]:
    """The titles of the threads in which recalled exchanges were said."""
    return titles_of(item.exchange for items in recalled.values() for item in items if item.exchange)


def titles_of(exchanges: Iterable[Remembered]) -> dict[uuid.UUID, str]:
    """The titles of the threads in which these were said, by thread."""
    ids = {e.thread_id for e in exchanges if e.thread_id}
    return dict(Thread.objects.filter(id__in=ids).values_list("id", "title"))

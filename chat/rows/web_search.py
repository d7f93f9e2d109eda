"""Template rows of searches of the web: the switch of a thread, what became of a search, and the pages it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.rows.recall import MAX_TEXT, RecallItemRow, is_folded
from chat.web_search.records import WebSearch, WebSource, is_available


@dataclass(frozen=True, slots=True)
class WebSwitchRow:
    """The switch in the composer; `url` changes it, "" in a new thread, whose first message carries it.

    `can_change` is False for readers who only see that it is on.
    """

    is_on: bool
    can_change: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class WebSearchRow:
    """The outcome of a search, and how much it found."""

    text: SafeString
    results_text: str
    is_failed: bool


@dataclass(frozen=True, slots=True)
class WebSourceRow:
    """A page that was found, as an item among those of recalled passages; `is_long`: the page folds the text."""

    number: int
    item_id: str
    title: str
    text: str
    is_long: bool
    address: str
    host: str
    published_at: datetime | None


def web_switch_row(thread: Any | None, *, can_change: bool, is_chosen: bool) -> WebSwitchRow | None:
    """Return the switch of a thread, or of a new one (`is_chosen`: switched on there); None if it is not offered."""
    if not is_available():
        return None
    if thread is None:
        return WebSwitchRow(is_chosen, can_change=True)
    return WebSwitchRow(thread.has_web_search, can_change, reverse("switch_web_search", args=[thread.id]))


def web_search_row(search: WebSearch | None) -> WebSearchRow | None:
    """Return what became of the search for a turn; None without one."""
    if search is None:
        return None
    if search.error:
        text = format_html("{}", _("The web could not be searched: %(reason)s") % {"reason": search.error})
        return WebSearchRow(text, "", is_failed=True)
    query = format_html('<strong dir="auto">{}</strong>', search.query)
    if not search.sources:
        return WebSearchRow(format_html(_("Nothing was found on the web for “{query}”"), query=query), "", False)
    count = len(search.sources)
    results = ngettext("%(count)s result", "%(count)s results", count) % {"count": count}
    return WebSearchRow(format_html(_("Searched the web for “{query}”"), query=query), results, is_failed=False)


def with_web_sources(
    items: Sequence[RecallItemRow], search: WebSearch | None
) -> Sequence[RecallItemRow | WebSourceRow]:
    """Return the items of a panel with the pages that a search has found, by their numbers."""
    pages = [_source_row(source) for source in search.sources] if search else []
    return sorted([*items, *pages], key=lambda item: item.number)


def _source_row(source: WebSource) -> WebSourceRow:
    text = source.text[:MAX_TEXT]
    return WebSourceRow(
        number=source.number,
        item_id=source.item_id,
        title=source.title,
        text=text,
        is_long=is_folded(text),
        address=source.address,
        host=(urlsplit(source.address).hostname or "").removeprefix("www."),
        published_at=source.published_at,
    )

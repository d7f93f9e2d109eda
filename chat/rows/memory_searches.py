"""Template rows of the searches of memory that the model made for an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.models import Turn
from chat.rendering.citations import item_dom_id
from chat.rows.recall import RecallItemRow

# More searches than this are collapsed into one line.
_MAX_LINES = 3
# By tool and state. The label is what the model looked for; of "read_more" it is the number of a passage.
_TEXTS = {
    ("search_memory", "running"): gettext_noop("Searching memory for “{label}”"),
    ("search_memory", "done"): gettext_noop("Searched memory for “{label}”"),
    ("search_memory", "failed"): gettext_noop(
        "Could not search memory for “{label}”. The answer continues without it."
    ),
    ("read_more", "running"): gettext_noop("Reading more around source {label}"),
    ("read_more", "done"): gettext_noop("Read more around source {label}"),
    ("read_more", "failed"): gettext_noop(
        "Could not read more around source {label}. The answer continues without it."
    ),
    ("list_documents", "running"): gettext_noop("Listing documents"),
    ("list_documents", "done"): gettext_noop("Listed documents"),
    ("list_documents", "failed"): gettext_noop("Could not list documents. The answer continues without it."),
}
_FAILED = gettext_noop("The model asked for something that Cato does not offer. The answer continues without it.")


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A passage that a search found; `target` is the id of its item in the margin, `is_cited` None while it is unknown."""

    excerpt: str
    location: str
    number: int
    target: str
    is_cited: bool | None


@dataclass(frozen=True, slots=True)
class MemorySearchRow:
    """One search: its sentence, how much it found, the passages, and how many of them are left out as not cited."""

    text: SafeString
    results_text: str
    is_running: bool
    is_failed: bool
    found: Sequence[FoundRow] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class MemorySearchesRow:
    """All searches of an answer; more than three have a `summary`. `limit_text` says that the model wanted more."""

    searches: Sequence[MemorySearchRow]
    summary: str
    limit_text: str


def memory_searches_row(turn: Turn, items: Sequence[RecallItemRow], cited: Sequence[int]) -> MemorySearchesRow | None:
    """Return the searches of the turn's answer; None without any.

    `items` are those of its recall panel, `cited` the numbers of those that the complete answer cites.
    """
    if not turn.memory_searches:
        return None
    by_number = {item.number: item for item in items}
    made = [search for search in turn.memory_searches if search["state"] != "limit"]
    searches = [_search_row(turn, search, by_number, None if turn.is_running else cited) for search in made]
    limit = ""
    if len(made) < len(turn.memory_searches):
        limit = ngettext("Stopped after %(count)s search", "Stopped after %(count)s searches", len(made))
    return MemorySearchesRow(searches, _summary(made), limit % {"count": len(made)} if limit else "")


def _summary(made: Sequence[Mapping[str, Any]]) -> str:
    if len(made) <= _MAX_LINES:
        return ""
    numbers = {number for search in made for number in search["numbers"]}
    times = ngettext("Searched memory %(count)s time", "Searched memory %(count)s times", len(made))
    return f"{times % {'count': len(made)}} · {_results_text(len(numbers))}"


def _search_row(
    turn: Turn, search: Mapping[str, Any], items: Mapping[int, RecallItemRow], cited: Sequence[int] | None
) -> MemorySearchRow:
    # A search that a stop or a restart has interrupted has not found anything.
    state = "failed" if search["state"] == "running" and not turn.is_running else search["state"]
    text = _(_TEXTS.get((search["tool"], state), _FAILED))
    found = [_found_row(turn, items[number], cited) for number in search["numbers"] if number in items]
    shown = [row for row in found if row.is_cited] or found if cited is not None else found
    return MemorySearchRow(
        text=format_html(text, label=format_html('<strong dir="auto">{}</strong>', search["label"])),
        results_text=_results_text(len(found)) if state == "done" and search["tool"] != "list_documents" else "",
        is_running=state == "running",
        is_failed=state == "failed",
        found=shown,
        others=len(found) - len(shown),
    )


def _found_row(turn: Turn, item: RecallItemRow, cited: Sequence[int] | None) -> FoundRow:
    target = item_dom_id(turn.id, item.exchange_id)
    missing = _("Forgotten") if item.is_forgotten else _("No longer available in this thread")
    return FoundRow(
        excerpt=missing if item.is_missing else item.message_excerpt or item.answer_excerpt,
        location=item.location,
        number=item.number,
        target=target,
        is_cited=None if cited is None else item.number in cited,
    )


def _results_text(count: int) -> str:
    if not count:
        return _("no results")
    return ngettext("%(count)s result", "%(count)s results", count) % {"count": count}

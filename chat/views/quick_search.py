"""The quick search that Ctrl K opens."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.quick_search import QuickSearchResults, quick_search
from chat.rows.thread_titles import thread_titles
from chat.views.exchanges import turn_url
from memory.api import PageRequest, clean_text, document_url, excerpt, exchange_url

_MAX_QUERY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class QuickSearchRow:
    """A result; `about` is shown after its title."""

    title: str
    url: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class QuickSearchGroup:
    """The results of one kind."""

    name: str
    kind: str
    rows: list[QuickSearchRow]


@require_GET
def find(request: PageRequest) -> HttpResponse:
    """Return grouped results for the text typed so far; without htmx, redirect to the search page."""
    query = clean_text(request.GET.get("q", "")).strip()[:_MAX_QUERY_LENGTH]
    if not request.htmx:
        return redirect(reverse("search", query={"q": query}))
    roles = {"administrator"} if request.user.is_administrator else set[str]()
    results = quick_search(query, person_id=request.user.pk, roles=roles)
    context = {"query": query, "groups": _groups(results), "note": results.note}
    return render(request, "chat/_quick_search_results.html", context)


def _groups(results: QuickSearchResults) -> list[QuickSearchGroup]:
    titles = thread_titles(hit.exchange for hit in results.memories)
    memories = [
        QuickSearchRow(
            excerpt(hit.exchange.user_message, 100),
            exchange_url(hit.exchange),
            titles.get(hit.exchange.thread_id, "") if hit.exchange.thread_id else hit.exchange.source_file,
        )
        for hit in results.memories
    ]
    groups = [
        QuickSearchGroup(
            _("Threads"), "thread", [QuickSearchRow(t.title, reverse("thread", args=[t.id])) for t in results.threads]
        ),
        QuickSearchGroup(_("Memory"), "memory", memories),
        QuickSearchGroup(
            _("Not remembered"),
            "turn",
            [QuickSearchRow(excerpt(t.message, 100), turn_url(t), t.thread.title) for t in results.turns],
        ),
        QuickSearchGroup(
            _("Documents"), "document", [QuickSearchRow(d.name, document_url(d.pk)) for d in results.documents]
        ),
        QuickSearchGroup(
            _("Commands"),
            "command",
            [
                QuickSearchRow(f"/{c.name} {c.usage}".strip(), _command_url(c.name), c.localized_description)
                for c in results.commands
            ],
        ),
    ]
    return [group for group in groups if group.rows]


def _command_url(name: str) -> str:
    return f"{reverse('new_thread')}?say=/{name}"

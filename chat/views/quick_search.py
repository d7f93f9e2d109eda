"""The box that Ctrl K opens."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.quick_search import QuickSearchResults, quick_search
from chat.rows.recall import titles_of
from chat.views.exchanges import place_of
from memory.api import PageRequest, clean_text, document_url, excerpt, exchange_url

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class QuickSearchRow:
    title: str
    url: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class QuickSearchGroup:
    name: str
    kind: str
    rows: list[QuickSearchRow]


@require_GET
def find(request: PageRequest) -> HttpResponse:
    """What there is for what was typed so far, in groups; opened as a page, the page of search."""
    query = clean_text(request.GET.get("q", "")).strip()[:_LONGEST]
    if not request.htmx:
        return redirect(f"{reverse('search')}?{urlencode({'q': query})}")
    found = quick_search(query, person_id=request.user.pk)
    context = {"query": query, "groups": _groups(found), "is_empty": found.is_empty, "note": found.note}
    return render(request, "chat/_quick_search_results.html", context)


def _groups(found: QuickSearchResults) -> list[QuickSearchGroup]:
    titles = titles_of(hit.exchange for hit in found.memories)
    memories = [
        QuickSearchRow(
            excerpt(hit.exchange.user_message, 100),
            exchange_url(hit.exchange),
            titles.get(hit.exchange.thread_id, "") if hit.exchange.thread_id else hit.exchange.source_file,
        )
        for hit in found.memories
    ]
    groups = [
        QuickSearchGroup(
            _("Threads"), "thread", [QuickSearchRow(t.title, reverse("thread", args=[t.id])) for t in found.threads]
        ),
        QuickSearchGroup(_("Memory"), "memory", memories),
        QuickSearchGroup(
            _("Not remembered"),
            "turn",
            [QuickSearchRow(excerpt(t.message, 100), place_of(t), t.thread.title) for t in found.turns],
        ),
        QuickSearchGroup(
            _("Documents"), "document", [QuickSearchRow(d.name, document_url(d.pk)) for d in found.documents]
        ),
        QuickSearchGroup(
            _("Commands"),
            "command",
            [QuickSearchRow(f"/{c.name} {c.usage}".strip(), _typed(c.name), c.does) for c in found.commands],
        ),
    ]
    return [group for group in groups if group.rows]


def _typed(name: str) -> str:
    return f"{reverse('new_thread')}?say=/{name}"

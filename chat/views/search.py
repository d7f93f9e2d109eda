"""Search page over everything that the person can read."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.search.filters import SearchFilters
from chat.search.query import SearchQuery, parse_query
from chat.search.rows import ORDERS, RELEVANCE, count_text, hit_rows, in_order
from memory import api as memory
from memory.api import (
    EmbeddingError,
    Hit,
    InvalidInputError,
    PageRequest,
    RateLimitedError,
    RecallFilter,
    SearchResults,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
    all_of,
    clean_text,
    contains_all_words,
)

_MAX_HITS = 50
# Hits below the gate that are shown after the others.
_MAX_LESS_SIMILAR = 10
_MAX_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """A link to the same search with something changed."""

    label: str
    url: str
    is_current: bool = False


@require_GET
def search(request: PageRequest) -> HttpResponse:
    """Show the page; htmx takes the hits and the filters from it."""
    typed = clean_text(request.GET.get("q", "")).strip()
    query = parse_query(typed)
    readable = memory.readable_space_ids(request.user.pk)
    recall_filter = memory.build_recall_filter(request.GET.getlist("only"), {}, spaces=readable)
    form = SearchFilters(request.GET, query=query, person_id=request.user.pk)
    order = request.GET.get("order", "")
    page = _Page(query, form, recall_filter, order if order in ORDERS else RELEVANCE)
    is_valid = form.is_valid()
    context: dict[str, object] = {
        "section": "search",
        # What an operator names is a filter now, and no longer part of the query.
        "query": query.typed if is_valid else typed,
        "filters": form,
        "clear_url": page.url(**dict.fromkeys(form.set_fields, "")),
        "removals": {name: page.url(**{name: ""}) for name in form.set_fields},
        "only": recall_filter.documents,
        "only_names": memory.describe_recall_filter(recall_filter, spaces=readable),
        "order": page.order,
    }
    status = 200
    if query.text and is_valid:
        try:
            memory.count_search(request.user.pk)
            context |= page.results()
        except (
            VectorStoreUnavailableError,
            VectorStoreDisabledError,
            EmbeddingError,
            InvalidInputError,
            RateLimitedError,
        ) as error:
            context["error"] = str(error)
            status = 429 if isinstance(error, RateLimitedError) else 200
    return render(request, "chat/search.html", context, status=status)


@dataclass(frozen=True, slots=True)
class _Page:
    """One search, and the addresses of searches that differ from it."""

    query: SearchQuery
    form: SearchFilters
    recall_filter: RecallFilter
    order: str

    def url(self, **changes: str) -> str:
        """Return the address of this search with these parameters changed."""
        values = {"q": self.query.typed, **self.form.data, "order": self.order if self.order != RELEVANCE else ""}
        values |= changes
        only = [("only", str(id)) for id in self.recall_filter.documents]
        return f"{reverse('search')}?{urlencode([pair for pair in values.items() if pair[1]] + only)}"

    def results(self) -> dict[str, object]:
        """Search, and return what the template shows."""
        found = self._search(self.form)
        hits = [hit for hit in found.results if _is_relevant(hit, self.query)]
        # Only relevant hits are put in another order; the others would come first by their dates alone.
        less_similar = [hit for hit in found.results if hit not in hits][:_MAX_LESS_SIMILAR]
        return {
            "searched": True,
            "hits": hit_rows(in_order(hits, self.order), self.query.text),
            "less_similar": hit_rows(less_similar, self.query.text) if self.order == RELEVANCE else [],
            "note": memory.LEXICAL_ONLY_NOTE if found.is_lexical_only else "",
            "total_text": count_text(len(hits), self.order, is_cut=len(hits) == _MAX_HITS),
            "orders": [Choice(str(label), self.url(order=name), name == self.order) for name, label in ORDERS.items()],
            "link": self.url(),
            "nothing_text": "" if hits else self._nothing_text(),
            "suggestions": [] if hits else self._suggestions(),
        }

    def _search(self, form: SearchFilters) -> SearchResults:
        return memory.search(
            self.query.text,
            spaces=form.spaces,
            count=_MAX_HITS,
            min_similarity=form.min_similarity,
            filters=all_of(self.recall_filter.filter(), form.condition(self.query)),
        )

    def _nothing_text(self) -> str:
        filters = " ".join(self.form.descriptions().values())
        texts = {"filters": filters, "query": self.query.typed}
        return (_("Nothing %(filters)s matches “%(query)s”.") if filters else _("Nothing matches “%(query)s”.")) % texts

    def _suggestions(self) -> list[Choice]:
        """Return searches without one of the filters, if they find something, with how much they find."""
        labels = {
            "who": _("From anyone"),
            "space": _("In all spaces"),
            "since": _("Without a first day"),
            "until": _("Without a last day"),
            "type": _("Any type"),
            "thread": _("Any thread"),
            "document": _("Any document"),
            "similarity": _("Any similarity"),
        }
        suggestions: list[Choice] = []
        for name in self.form.set_fields:
            if len(suggestions) == _MAX_SUGGESTIONS:
                break
            found = self._search(self.form.without(name)).results
            if count := sum(_is_relevant(hit, self.query) for hit in found):
                suggestions.append(Choice(f"{labels[name]} ({count})", self.url(**{name: ""})))
        return suggestions


def _is_relevant(hit: Hit, query: SearchQuery) -> bool:
    """Return True for a hit that would be recalled, and for one with every word of the query, which may be one word."""
    return not hit.is_below_gate or contains_all_words(
        f"{hit.exchange.user_message} {hit.exchange.assistant_message}", query.text
    )

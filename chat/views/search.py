"""Search page over everything that the person can read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from chat.rows.receipts import FactRow
from chat.search.filters import REMOVALS, SearchFilters
from chat.search.query import SearchQuery, parse_query
from chat.search.rows import (
    MOST_COUNTED,
    ORDERS,
    RELEVANCE,
    count_text,
    hit_rows,
    in_order,
    listed_count_text,
    search_figures,
)
from memory import api as memory
from memory.api import (
    EmbeddingError,
    Filter,
    InvalidInputError,
    LongPaginator,
    PageRequest,
    RateLimitedError,
    RecallFilter,
    SearchResults,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
    all_of,
    clean_text,
    is_relevant,
)

# Relevant hits that are shown at first, and on request.
_HITS, _MORE_HITS = 20, 80
# Hits below the gate that are shown after the others.
_MAX_LESS_SIMILAR = 10
_MAX_SUGGESTIONS = 3
# Days until today that an empty search offers to list.
_PERIODS = {
    0: gettext_lazy("today"),
    1: gettext_lazy("since yesterday"),
    7: gettext_lazy("in the last 7 days"),
    30: gettext_lazy("in the last 30 days"),
}


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
    shows_more = bool(request.GET.get("more"))
    page = _Page(query, form, recall_filter, order if order in ORDERS else RELEVANCE, shows_more=shows_more)
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
        "periods": page.periods(),
    }
    status = 200
    try:
        if not query.text and is_valid and form.can_list:
            context |= page.listing(request.GET.get("page", ""))
        elif query.text and is_valid:
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
    shows_more: bool

    @property
    def max_hits(self) -> int:
        """Return how many relevant hits are shown."""
        return _MORE_HITS if self.shows_more else _HITS

    def url(self, **changes: str) -> str:
        """Return the address of this search with these parameters changed."""
        order = self.order if self.order != RELEVANCE else ""
        values = {"q": self.query.typed, **self.form.data, "order": order, "more": "yes" if self.shows_more else ""}
        values |= changes
        only = [("only", str(id)) for id in self.recall_filter.documents]
        return f"{reverse('search')}?{urlencode([pair for pair in values.items() if pair[1]] + only)}"

    def periods(self) -> list[Choice]:
        """Return links to what was remembered lately."""
        today = timezone.localdate()
        return [
            Choice(str(label), self.url(since=str(today - timedelta(days=days)))) for days, label in _PERIODS.items()
        ]

    def results(self) -> dict[str, object]:
        """Search, and return what the template shows."""
        found = self._search(self.form)
        hits = [hit for hit in found.results if is_relevant(hit, self.query.text)]
        # Only relevant hits are put in another order; the others would come first by their dates alone.
        less_similar = [hit for hit in found.results if hit not in hits][:_MAX_LESS_SIMILAR]
        shown, others = hits[: self.max_hits], hits[self.max_hits :]
        rows = hit_rows(in_order(shown, self.order), self.query.text)
        return {
            "searched": True,
            "hits": rows,
            "less_similar": [] if others or self.order != RELEVANCE else hit_rows(less_similar, self.query.text),
            "note": found.note_text,
            "total_text": count_text(len(rows), self.order, is_cut=bool(others)),
            "orders": [Choice(str(label), self.url(order=name), name == self.order) for name, label in ORDERS.items()],
            "link": self.url(),
            # The page opens at the first hit that is new.
            "more_url": f"{self.url(more='yes')}#hit-{others[0].exchange.id}" if others and not self.shows_more else "",
            **({} if hits else self._nothing(found)),
        }

    def listing(self, number: str) -> dict[str, object]:
        """Return what the template shows without words to search for: all that the filters cover, the newest first."""
        ids = partial(memory.ids_by_date, self.form.spaces, self._condition(self.form))
        pages = LongPaginator(ids(), _HITS, first=ids)
        page = pages.get_page(number)
        hits = hit_rows(memory.listed_hits(list(page)), "")
        total = listed_count_text(pages.counted_rows, is_cut=pages.is_cut)
        return {"searched": bool(hits), "hits": hits, "total_text": total, "link": self.url(), "page": page}

    def _search(self, form: SearchFilters) -> SearchResults:
        return memory.search(
            self.query.text,
            spaces=form.spaces,
            count=self.max_hits + _MAX_LESS_SIMILAR,
            min_similarity=form.min_similarity,
            filters=self._condition(form),
            reader_id=form.person_id,
        )

    def _condition(self, form: SearchFilters) -> Filter | None:
        return all_of(self.recall_filter.filter(), form.condition(self.query))

    def _nothing(self, found: SearchResults) -> dict[str, object]:
        """Return what the page says about a search without relevant hits, and what to try."""
        filters = " ".join(self.form.descriptions().values())
        texts = {"filters": filters, "query": self.query.typed}
        suggested = memory.suggest_query(self.query.typed, self.query.text, self.form.readable)
        return {
            "nothing_text": (
                (_("Nothing %(filters)s matches “%(query)s”.") if filters else _("Nothing matches “%(query)s”."))
                % texts
            ),
            "did_you_mean": Choice(suggested, self.url(q=suggested)) if suggested else None,
            "figures": self._figures(found),
            "suggestions": self._suggestions(),
        }

    def _figures(self, found: SearchResults) -> list[FactRow]:
        form = self.form
        searched = memory.count_findable(form.spaces, self._condition(form), most=MOST_COUNTED)
        # The similarity of the best hit is known without the filter on similarities only.
        nearest = found if form.min_similarity is None else self._search(form.without(["similarity"]))
        return search_figures(
            searched=searched,
            readable=memory.count_findable(form.readable, most=MOST_COUNTED),
            min_similarity=form.min_similarity,
            similarities=[hit.similarity for hit in nearest.results if hit.similarity is not None],
            unindexed=memory.count_unindexed(form.readable),
            is_lexical_only=found.is_lexical_only,
        )

    def _suggestions(self) -> list[Choice]:
        """Return searches without one of the filters, if they find something, with how much they find."""
        suggestions: list[Choice] = []
        for label, names in REMOVALS:
            if len(suggestions) == _MAX_SUGGESTIONS or not set(names) & set(self.form.set_fields):
                continue
            found = self._search(self.form.without(names)).results
            if count := sum(is_relevant(hit, self.query.text) for hit in found):
                counted = f"{self.max_hits}+" if count > self.max_hits else count
                suggestions.append(Choice(f"{label} ({counted})", self.url(**dict.fromkeys(names, ""))))
        return suggestions

"""Search page over everything that the person can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memory.errors import (
    EmbeddingError,
    InvalidInputError,
    RateLimitedError,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
)
from memory.filters import all_of
from memory.models import Space
from memory.retrieval import search as retrieval
from memory.retrieval.recall_filter import build_recall_filter, describe_recall_filter
from memory.retrieval.types import Hit
from memory.spaces import access
from memory.text import clean_text, excerpt
from memory.utils.formatting import LEXICAL_ONLY_NOTE, SOURCES, format_similarity
from memory.utils.rate_limits import count_search
from memory.views.http import PageRequest
from memory.views.links import exchange_url
from memory.views.search_filters import SearchFilters

_LIMIT = 20
_EXCERPT = 320


@dataclass(frozen=True, slots=True)
class HitRow:
    """One hit of a search; `bar` is its similarity from 0 to 20."""

    said_at: datetime
    title: str
    excerpt: str
    similarity_text: str
    bar: int
    is_below_gate: bool
    who: str
    space_name: str
    space_kind: str
    source: str
    url: str
    location: str


@require_GET
def search(request: PageRequest) -> HttpResponse:
    """Show the page, for htmx requests only the list of hits."""
    query = clean_text(request.GET.get("q", "")).strip()
    readable = access.readable_space_ids(request.user.pk)
    context: dict[str, object] = {"section": "search", "query": query, "hits": []}
    recall_filter = build_recall_filter(request.GET.getlist("only"), {}, spaces=readable)
    context |= {"only": recall_filter.documents, "only_names": describe_recall_filter(recall_filter, spaces=readable)}
    form = SearchFilters(request.GET, person_id=request.user.pk)
    context |= {"filters": form}
    status = 200
    if query and form.is_valid():
        try:
            count_search(request.user.pk)
            filters = all_of(recall_filter.filter(), form.condition())
            found = retrieval.search(query, spaces=form.spaces, count=_LIMIT, filters=filters)
            hits = hit_rows(found.results)
            # The number of all matches is not counted, since that would take longer than the search.
            context |= {
                "hits": hits,
                "searched": True,
                "note": LEXICAL_ONLY_NOTE if found.is_lexical_only else "",
                "total_text": _("Results: %(count)s") % {"count": len(hits)},
            }
        except (
            VectorStoreUnavailableError,
            VectorStoreDisabledError,
            EmbeddingError,
            InvalidInputError,
            RateLimitedError,
        ) as error:
            context["error"] = str(error)
            status = 429 if isinstance(error, RateLimitedError) else 200
    template = "memory/_hits.html" if request.htmx else "memory/search.html"
    return render(request, template, context, status=status)


def hit_rows(results: Sequence[Hit]) -> list[HitRow]:
    """Return the hits as rows: the title is the message, the excerpt the answer or the note."""
    spaces = Space.objects.in_bulk({result.exchange.space_id for result in results})
    return [_hit_row(result, spaces[result.exchange.space_id]) for result in results]


def _hit_row(result: Hit, space: Space) -> HitRow:
    exchange = result.exchange
    body = exchange.assistant_message or exchange.user_message
    return HitRow(
        said_at=exchange.timestamp,
        title=excerpt(exchange.user_message, 90) if exchange.assistant_message else exchange.source_file or _("Note"),
        excerpt=excerpt(body, _EXCERPT),
        similarity_text=format_similarity(result.similarity) if result.similarity is not None else "",
        bar=round(20 * min(1.0, max(0.0, result.similarity or 0.0))),
        is_below_gate=result.is_below_gate,
        who=exchange.owner_name,
        space_name=space.display_name,
        space_kind=space.kind,
        source=str(SOURCES[exchange.source]),
        url=exchange_url(exchange),
        location=exchange.location.label if exchange.location else "",
    )

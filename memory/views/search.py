"""Finding by meaning over everything one may read."""

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
from memory.models import Space
from memory.retrieval import search as retrieval
from memory.retrieval.recall_filter import build_recall_filter, describe_recall_filter
from memory.retrieval.types import Hit
from memory.spaces import access
from memory.text import clean_text, excerpt
from memory.utils.formatting import FOUND_BY_WORDS, SOURCES, format_similarity
from memory.utils.rate_limits import count_search
from memory.views.http import PageRequest
from memory.views.links import exchange_url

_COUNT = 20
_EXCERPT = 320


@dataclass(frozen=True, slots=True)
class HitRow:
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
    """The page, and for htmx its list of hits alone."""
    query = clean_text(request.GET.get("q", "")).strip()
    readable = access.readable_space_ids(request.user.pk)
    context: dict[str, object] = {"section": "search", "query": query, "searched": bool(query), "hits": []}
    scope = build_recall_filter(request.GET.getlist("only"), {}, spaces=readable)
    context |= {"only": scope.documents, "only_names": describe_recall_filter(scope, spaces=readable)}
    status = 200
    if query:
        try:
            count_search(request.user.pk)
            found = retrieval.search(query, spaces=readable, count=_COUNT, filters=scope.filter())
            hits = hit_rows(found.results)
            # Out of how many is not counted: that would take longer than to find them.
            context |= {
                "hits": hits,
                "note": FOUND_BY_WORDS if found.by_words_alone else "",
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
    """Results as the page shows them: titled by what was asked, with the answer (or the note) as the excerpt."""
    found = Space.objects.in_bulk({result.exchange.space_id for result in results})
    return [_hit(result, found[result.exchange.space_id]) for result in results]


def _hit(result: Hit, space: Space) -> HitRow:
    said = result.exchange
    body = said.assistant_message or said.user_message
    return HitRow(
        said_at=said.timestamp,
        title=excerpt(said.user_message, 90) if said.assistant_message else said.source_file or _("Note"),
        excerpt=excerpt(body, _EXCERPT),
        similarity_text=format_similarity(result.similarity) if result.similarity is not None else "",
        bar=round(20 * min(1.0, max(0.0, result.similarity or 0.0))),
        is_below_gate=result.is_below_gate,
        who=said.owner_name,
        space_name=space.display_name,
        space_kind=space.kind,
        source=str(SOURCES[said.source]),
        url=exchange_url(said),
        location=said.location.label if said.location else "",
    )

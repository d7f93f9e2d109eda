"""The page of statements, what people decide about them, and their export."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import groupby

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from chat import access, services
from chat.rows.knowledge import StatementRow, TopicRow, answers_row, statement_rows, topic_rows
from chat.views.extraction_settings import progress_context
from chat.views.form_parsing import parse_revision
from memory import api as memory
from memory.api import (
    InvalidInputError,
    PageRequest,
    Statement,
    StatementConflictError,
    StatementFilter,
    VectorStoreDisabledError,
    clean_text,
    knowledge_decisions,
    parse_uuid,
    space_choices,
)

_PAGE_SIZE = 50
_ORDERS = {
    "topic": gettext_lazy("By topic"),
    "newest": gettext_lazy("Newest"),
    "recalled": gettext_lazy("Most recalled"),
}


_KINDS = {
    "decision": gettext_lazy("Decisions"),
    "fact": gettext_lazy("Facts"),
    "preference": gettext_lazy("Preferences"),
    "plan": gettext_lazy("Plans"),
}
_STATES = {
    "current": gettext_lazy("Current"),
    "superseded": gettext_lazy("Superseded"),
    "conflicting": gettext_lazy("Conflicting"),
}


@require_GET
def knowledge(request: PageRequest) -> HttpResponse:
    """List the statements that the person may read; `?at=` opens the page with this one, if `?page=` names none."""
    wanted = _filter(request.GET)
    spaces = memory.readable_space_ids(request.user.pk)
    ids = memory.statement_ids(spaces, wanted)
    at = parse_uuid(request.GET.get("at", ""))
    number = request.GET.get("page") or (_page_of(at, ids) if at in ids else 1)
    page = Paginator(ids, _PAGE_SIZE).get_page(number)
    statements = memory.load_statements(list(page.object_list))
    rows = statement_rows(statements, request.user.pk, is_administrator=request.user.is_administrator)
    topics = [TopicRow("", "", rows)]
    if wanted.order == "topic":
        topics = topic_rows(rows, memory.count_by_topic(spaces, wanted))
    context = {
        "section": "knowledge",
        "topics": topics if rows else [],
        "page": page,
        "places": space_choices(request.user.pk),
        "space": request.GET.get("space", ""),
        "authors": memory.authors_of_statements(spaces),
        "author": wanted.author_id,
        "kinds": _KINDS,
        "kind": wanted.kind,
        "states": _STATES,
        "state": wanted.state,
        "since": wanted.since,
        "text": wanted.text,
        "is_review": wanted.to_review,
        "to_review": memory.count_to_review(spaces, wanted.space_id),
        "order": wanted.order,
        "orders": _ORDERS,
        "is_filtered": replace(wanted, order="topic") != StatementFilter(),
        "query": request.GET.urlencode(),
        "at": at,
    } | progress_context(request.user.pk)
    return render(request, "chat/knowledge.html", context)


@require_GET
def answers(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """List the answers for which a statement was recalled; for htmx as a part of the page of statements."""
    statement = access.get_exchange(request.user.pk, statement_id)
    context = {"section": "knowledge", "statement": statement, "row": answers_row(request.user.pk, statement.pk)}
    return render(request, "chat/_statement_answers.html" if request.htmx else "chat/statement_answers.html", context)


@require_GET
def export(request: PageRequest) -> HttpResponse:
    """Return the statements of a list as Markdown, or as JSON with `?format=json`."""
    spaces = memory.readable_space_ids(request.user.pk)
    statements = memory.load_statements(memory.statement_ids(spaces, _filter(request.GET)))
    rows = statement_rows(statements, request.user.pk, is_administrator=request.user.is_administrator)
    if request.GET.get("format") == "json":
        content = [_as_json(row) for row in rows]
        response = HttpResponse(json.dumps(content, ensure_ascii=False, indent=2), content_type="application/json")
        response["Content-Disposition"] = 'attachment; filename="knowledge.json"'
        return response
    lines = [f"# {_('Knowledge')}"]
    for topic, of_topic in groupby(rows, key=lambda row: row.topic):
        lines.append(f"\n## {topic}\n")
        for row in of_topic:
            lines += [f"- {_on_one_line(row.text)}", f"  {row.label} {row.facts}".rstrip()]
            lines += [
                f"  - “{_on_one_line(source.quote)}” {source.attribution}, {source.said_at:%Y-%m-%d}"
                for source in row.sources
            ]
    response = HttpResponse("\n".join(lines) + "\n", content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="knowledge.md"'
    return response


@require_POST
def confirm(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Confirm a statement."""
    return _decide(request, statement_id, knowledge_decisions.confirm, _("Confirmed by you."))


@require_POST
def reject(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Reject a statement for all readers of its space."""
    return _decide(request, statement_id, knowledge_decisions.reject, _("Rejected by you. It will not come back."))


@require_POST
def correct(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Replace a statement by what the person writes."""
    correction = partial(knowledge_decisions.correct, text=clean_text(request.POST.get("text", "")))
    return _decide(request, statement_id, correction, _("Superseded by your statement."))


@require_POST
def keep(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Settle a conflict: `other` names the statement that is superseded, or, with `both`, the two are kept."""
    resolution = partial(knowledge_decisions.keep, other_id=parse_uuid(request.POST.get("other", "")))
    return _decide(request, statement_id, resolution, _("Resolved by you."))


@require_POST
def forget(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Forget a statement, and with `sources` those of its sources that are the person's."""
    before = _listed(request)
    services.forget_statement(
        request.user.pk,
        statement_id,
        is_administrator=request.user.is_administrator,
        with_own_sources=request.POST.get("sources") == "yes",
    )
    messages.success(request, _("Forgotten. Nobody can recall or find it any more."))
    return _back(request, before, statement_id)


def _decide(
    request: PageRequest, statement_id: uuid.UUID, act: Callable[..., Statement | None], success: str
) -> HttpResponse:
    """Act on the revision that the person saw, and return to the list; nothing is overwritten."""
    before, changed = _listed(request), None
    try:
        changed = act(request.user.pk, statement_id, revision=parse_revision(request))
    except (StatementConflictError, InvalidInputError, VectorStoreDisabledError) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, success)
    return _back(request, before, *([changed.pk] if changed else []), statement_id)


def _listed(request: PageRequest) -> list[uuid.UUID]:
    """Return the statements of the list that was shown, whose filters the form contains."""
    spaces = memory.readable_space_ids(request.user.pk)
    return memory.statement_ids(spaces, _filter(QueryDict(request.POST.get("query", ""))))


def _back(request: PageRequest, before: Sequence[uuid.UUID], *wanted: uuid.UUID) -> HttpResponse:
    """Redirect to the first of the wanted statements that is still listed, or to the one that took the last one's place."""
    listed = _listed(request)
    at = before.index(wanted[-1]) if wanted[-1] in before else len(before)
    remaining = set(listed)
    place = next((id for id in (*wanted, *before[at:], *reversed(before[:at])) if id in remaining), None)
    query = QueryDict(request.POST.get("query", ""), mutable=True)
    for name in ("at", "page"):
        query.pop(name, None)
    if place and (page := _page_of(place, listed)) > 1:
        query["page"] = str(page)
    anchor = f"statement-{place}" if place else "statements"
    return redirect(reverse("knowledge", query=query, fragment=anchor))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _page_of(id: uuid.UUID, ids: Sequence[uuid.UUID]) -> int:
    return ids.index(id) // _PAGE_SIZE + 1


def _parse_day(text: str) -> date | None:
    """Return the day in ISO format, None for anything else."""
    try:
        return parse_date(text)
    except ValueError:  # such as 30 February
        return None


def _filter(parameters: QueryDict) -> StatementFilter:
    order, kind, state = (parameters.get(name, "") for name in ("order", "kind", "state"))
    return StatementFilter(
        space_id=parse_uuid(parameters.get("space", "")),
        author_id=parse_uuid(parameters.get("who", "")),
        kind=kind if kind in _KINDS else "",
        state=state if state in _STATES else "",
        since=_parse_day(parameters.get("since", "")),
        text=clean_text(parameters.get("q", "")).strip()[:200],
        to_review=parameters.get("review") == "yes",
        order=order if order in _ORDERS else "topic",
    )


def _as_json(row: StatementRow) -> dict[str, object]:
    return {
        "id": str(row.id),
        "text": row.text,
        "topic": row.topic,
        "state": row.state,
        "said_at": row.said_at.isoformat(),
        "space": row.space_name,
        "sources": [
            {"quote": source.quote, "said_at": source.said_at.isoformat(), "place": source.place, "url": source.url}
            for source in row.sources
        ],
    }

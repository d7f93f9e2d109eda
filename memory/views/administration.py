"""The administrator's pages of exchanges and failed jobs. Text of other people's own spaces is not shown."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from memory import generations, services, spaces
from memory import jobs as job_rows
from memory.guards import administrators_only
from memory.models import Embedding, Erasure, Exchange, Job, Space
from memory.requests import PageRequest
from memory.text import excerpt

_PAGE = 50
_MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    id: uuid.UUID
    text_shown: str
    size_text: str
    who: str
    space_name: str
    space_kind: str
    source: str
    said_at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class JobRow:
    id: str
    kind: str
    what: str
    error: str
    attempts: int
    since: datetime


@administrators_only
@require_GET
def exchanges(request: PageRequest) -> HttpResponse:
    """Every exchange, newest first, or the one with the id asked for."""
    rows = Exchange.objects.findable().select_related("owner", "space").order_by("-timestamp", "id")
    query = request.GET.get("q", "").strip()
    error = ""
    if query:
        try:
            rows = rows.filter(id=uuid.UUID(query))
        except ValueError:
            error, rows = "Exchanges are found here by their id, such as 3f2b8c1e-….", rows.none()
    serving = Embedding.objects.filter(generation=generations.serving())
    rows = rows.prefetch_related(Prefetch("embeddings", queryset=serving, to_attr="serving"))
    page = Paginator(rows, _PAGE).get_page(request.GET.get("page"))
    readable = spaces.readable_by(request.user.pk)
    context = {
        "section": "admin",
        "tab": "exchanges",
        "query": query,
        "error": error,
        "page": page,
        "rows": [_row(exchange, readable) for exchange in page],
        "forget_url": reverse("admin_forget"),
    }
    return render(request, "memory/admin_exchanges.html", context)


@administrators_only
@require_POST
def forget(request: PageRequest) -> HttpResponse:
    """Ask once, then forget what was ticked and give a receipt."""
    ids = _ticked(request)
    found = Exchange.objects.filter(id__in=ids, forgotten_at=None)
    if not ids or not found:
        messages.error(request, "Tick the exchanges that are to be forgotten first.")
        return redirect("admin_exchanges")
    if request.POST.get("confirmed") != "yes":
        return render(request, "memory/confirm_forget.html", _question(found.count(), ids))
    gone = services.forget(ids, by=request.user.pk)
    now = timezone.now()
    by = now + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
    removed = services.receipt_for(gone)
    lines = [
        {"label": "Forgotten", "figure": f"{len(gone):,} exchange{'' if len(gone) == 1 else 's'}"},
        {"label": "Out of every search and answer", "figure": f"{now:%d %b %H:%M} UTC"},
        {"label": "Out of the words", "figure": f"{removed.words:,}"},
        {"label": "Blank in recall panels", "figure": f"{removed.recalls:,}"},
        {"label": "Vectors being removed and verified", "figure": f"{removed.under_way:,} under way"},
        {"label": "Gone from the disk by", "figure": f"{by:%d %b %H:%M} UTC"},
    ]
    return render(
        request, "memory/receipt.html", {"section": "admin", "lines": lines, "back_url": reverse("admin_exchanges")}
    )


@administrators_only
@require_GET
def jobs(request: PageRequest) -> HttpResponse:
    """What failed for good, or is being tried again, with its reason."""
    troubled = Embedding.objects.exclude(error="").exclude(state=Job.State.DONE)
    erasures = Erasure.objects.exclude(error="").exclude(state=Job.State.DONE)
    rows = [_job_row("embedding", row) for row in troubled.select_related("exchange__owner").order_by("id")[:_PAGE]]
    rows += [_job_row("erasure", row) for row in erasures.select_related("exchange__owner").order_by("id")[:_PAGE]]
    context = {
        "section": "admin",
        "tab": "jobs",
        "rows": rows,
        "retry_url": reverse("admin_retry"),
        "failed": troubled.filter(state=Job.State.FAILED).count() + erasures.filter(state=Job.State.FAILED).count(),
    }
    return render(request, "memory/admin_jobs.html", context)


@administrators_only
@require_POST
def retry(request: PageRequest) -> HttpResponse:
    """Try what failed again: the one named, or all."""
    kind, _, number = request.POST.get("job", "").partition("-")
    embeddings, erasures = Embedding.objects.all(), Erasure.objects.all()
    if number.isdecimal():
        embeddings = embeddings.filter(pk=int(number)) if kind == "embedding" else embeddings.none()
        erasures = erasures.filter(pk=int(number)) if kind == "erasure" else erasures.none()
    again = services.retry_failed(embeddings) + job_rows.begin_again(erasures.filter(state=Job.State.FAILED))
    messages.success(request, f"{again:,} tried again." if again else "Nothing had failed for good.")
    return redirect("admin_jobs")


def _row(exchange: Exchange, readable: spaces.SpaceIds) -> ExchangeRow:
    hidden = exchange.space_id not in readable
    space = exchange.space
    states = [embedding.state for embedding in getattr(exchange, "serving", [])]
    names = {Job.State.PENDING: "waiting", Job.State.DONE: "remembered", Job.State.FAILED: "failed"}
    return ExchangeRow(
        id=exchange.id,
        text_shown="" if hidden else excerpt(exchange.user_message, 120),
        size_text=f"{exchange.size:,} characters" + (", not shown." if hidden else ""),
        who=str(exchange.owner),
        space_name="Their own" if hidden and space.kind == Space.Kind.OWN else space.name or space.get_kind_display(),
        space_kind=space.kind,
        source=exchange.source,
        said_at=exchange.timestamp,
        state=names[Job.State(states[0])] if states else "not in the index",
    )


def _job_row(kind: str, row: Embedding | Erasure) -> JobRow:
    what = f"{row.exchange.source} of {row.exchange.owner}, {row.exchange.size:,} characters"
    state = "failed" if row.state == Job.State.FAILED else "will be tried again"
    return JobRow(
        id=f"{kind}-{row.pk}",
        kind=f"{kind}, {state}",
        what=what,
        error=row.error,
        attempts=row.attempt,
        since=row.exchange.created_at,
    )


def _ticked(request: PageRequest) -> list[uuid.UUID]:
    ids = []
    for text in request.POST.getlist("exchange")[:_MOST_AT_ONCE]:
        try:
            ids.append(uuid.UUID(text))
        except ValueError:
            continue
    return ids


def _question(count: int, ids: list[uuid.UUID]) -> dict[str, object]:
    things = "this exchange" if count == 1 else f"{count:,} exchanges"
    them = "it" if count == 1 else "them"
    return {
        "section": "admin",
        "count": count,
        "ids": ids,
        "question": f"Forget {things}?",
        "consequence": f"Nobody can recall or find {them} from now on, not even after a new import. "
        "The words stay in the thread.",
        "action": reverse("admin_forget"),
        "back_url": reverse("admin_exchanges"),
    }

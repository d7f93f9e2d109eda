"""Page of one document: text in passages, versions, metadata and original."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.documents.deletion import forget_documents, forget_version
from memory.documents.downloads import stream_original
from memory.documents.metadata import set_document_metadata
from memory.documents.queries import (
    ChunkText,
    VersionStatus,
    chunk_index_at,
    list_chunks,
    list_versions,
    readable_document,
)
from memory.errors import CatoError, InvalidInputError
from memory.exchanges.moving import move_document
from memory.filters import parse_filter
from memory.models import Chunk, Document, DocumentVersion, HiddenPassage
from memory.retrieval.search import search
from memory.spaces import access
from memory.spaces.access import audience_text
from memory.text import clean_text, excerpt, parse_number
from memory.utils.formatting import format_datetime, format_number
from memory.views.document_rows import document_row, state_text, summary
from memory.views.documents import changeable, state_for, upload_limits
from memory.views.forms import format_metadata, parse_metadata, parse_space, space_choices
from memory.views.http import PageRequest

# Passages per page, and shown before a cited one.
_WINDOW = 60
_CONTEXT_BEFORE = 8
_MAX_HITS = 20


@dataclass(frozen=True, slots=True)
class PassageRow:
    """One passage of the text; `location` is empty if it equals the previous one."""

    number: int
    chunk: ChunkText
    is_cited: bool
    location: str
    url: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of the document."""

    number: int
    summary: str
    state_text: str
    uploaded_by: str
    at: datetime
    original_url: str
    forget_url: str


@require_GET
def document(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Show the text from the passage at offset `at`, or from number `from`; `q` searches in the document."""
    return _render(request, readable_document(access.readable_space_ids(request.user.pk), document_id))


def _render(request: PageRequest, found: Document, *, metadata_text: str = "", error: str = "") -> HttpResponse:
    """Return the page of a document; `metadata_text` is what was entered and could not be saved because of `error`."""
    query = clean_text(request.GET.get("q", "")).strip()
    searched: dict[str, object] = {}
    if query:
        searched = _search(found, request.user.pk, query)
        # The search can have taken seconds, in which the person can have lost the space.
        found = readable_document(access.readable_space_ids(request.user.pk), found.pk)
    state = state_for(request, found.pk)
    cited = chunk_index_at(found, parse_number(request.GET["at"]) or 0) if "at" in request.GET else None
    since = max(0, cited - _CONTEXT_BEFORE) if cited is not None else parse_number(request.GET.get("from", "")) or 0
    chunks = list_chunks(found, since=since, count=_WINDOW + 1)
    may_change = found.owner_id == request.user.pk or request.user.is_administrator
    context = {
        "section": "documents",
        "document": found,
        "row": document_row(state, person_id=request.user.pk, is_administrator=request.user.is_administrator),
        "title": state.live_version.title if state.live_version else "",
        "space_name": state.space_name,
        "passages": _passage_rows(chunks[:_WINDOW], cited),
        "hidden_passages": HiddenPassage.objects.filter(version=found.live_version_id).order_by("start", "pk"),
        "earlier_url": f"?{urlencode({'from': max(0, since - _WINDOW)})}" if since else "",
        "later_url": f"?{urlencode({'from': since + _WINDOW})}" if len(chunks) > _WINDOW else "",
        "versions": [_version_row(found, version, may_change) for version in list_versions(found)],
        "may_change": may_change,
        "upload_limits": upload_limits(),
        "metadata_text": metadata_text if error else format_metadata(found.metadata),
        "metadata_error": error,
        "query": query,
        **searched,
    }
    return render(request, "memory/document.html", context, status=422 if error else 200)


@require_GET
def original(request: PageRequest, document_id: uuid.UUID, number: int) -> StreamingHttpResponse:
    """Download the original file; the browser never displays it."""
    return stream_original(readable_document(access.readable_space_ids(request.user.pk), document_id), number)


@require_POST
def describe(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Replace the metadata, entered as one `key: value` per line."""
    found = changeable(request, document_id)
    text = request.POST.get("metadata", "")
    try:
        set_document_metadata(found, parse_metadata(text))
    except InvalidInputError as error:
        return _render(request, found, metadata_text=text, error=str(error))
    messages.success(request, _("Saved."))
    return redirect("document", document_id)


@require_http_methods(["GET", "POST"])
def move(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Ask for the target space; a POST moves the document."""
    found = changeable(request, document_id)
    if request.method == "GET":
        context = {"section": "documents", "document": found, "places": space_choices(request.user.pk, found.space_id)}
        return render(request, "memory/move_document.html", context)
    try:
        to = parse_space(request)
        if to is not None:
            move_document(found, to=to, by=request.user.pk)
            messages.success(request, _("Moved. %(audience)s") % {"audience": audience_text(to)})
    except CatoError as error:
        messages.error(request, str(error))
    return redirect("document", document_id)


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then delete the document or one version, and show a receipt."""
    found = changeable(request, document_id)
    number = request.POST.get("version", request.GET.get("version", ""))
    version = get_object_or_404(found.versions, number=parse_number(number) or 0) if number else None
    if request.method == "GET":
        return render(request, "memory/confirm.html", _confirmation(found, version))
    if version is not None:
        forget_version(version, by=request.user.pk)
        found.refresh_from_db()
        if found.forgotten_at is None:
            messages.success(request, _("Version %(number)s is deleted.") % {"number": version.number})
            return redirect("document", document_id)
    else:
        forget_documents([found.pk], by=request.user.pk)
    return render(request, "memory/receipt.html", _receipt(found))


def _passage_rows(chunks: list[ChunkText], cited: int | None) -> list[PassageRow]:
    previous = ["", *(chunk.location for chunk in chunks)]
    return [
        PassageRow(
            number=chunk.index + 1,
            chunk=chunk,
            is_cited=chunk.index == cited,
            location=chunk.location if chunk.location != before else "",
            url=f"?at={chunk.start}#passage-{chunk.index + 1}",
        )
        for before, chunk in zip(previous, chunks, strict=False)
    ]


def _version_row(found: Document, version: VersionStatus, may_change: bool) -> VersionRow:
    forget_url = f"{reverse('forget_document', args=[found.pk])}?version={version.number}"
    return VersionRow(
        number=version.number,
        summary=summary(version),
        state_text=state_text(version),
        uploaded_by=version.uploaded_by,
        at=version.created_at,
        original_url=reverse("document_original", args=[found.pk, version.number]) if version.has_original else "",
        forget_url=forget_url if may_change else "",
    )


def _search(found: Document, person_id: uuid.UUID, query: str) -> dict[str, object]:
    """Search in this document."""
    try:
        results = search(
            query,
            spaces=access.readable_space_ids(person_id),
            count=_MAX_HITS,
            filters=parse_filter({"document": str(found.pk)}),
            reader_id=person_id,
        )
    except CatoError as error:
        return {"search_error": str(error)}
    rows = [
        {
            "number": hit.exchange.location.index + 1,
            "location": hit.exchange.location.label,
            "excerpt": excerpt(hit.exchange.user_message, 200),
            "url": f"?at={hit.exchange.location.start}#passage-{hit.exchange.location.index + 1}",
        }
        for hit in results.results
        if hit.exchange.location and not hit.is_below_gate
    ]
    return {"hits": rows, "search_note": results.note_text}


def _confirmation(found: Document, version: DocumentVersion | None) -> dict[str, object]:
    question = _("Delete %(name)s?") % {"name": found.name}
    if version:
        question = _("Delete version %(number)s of %(name)s?") % {"number": version.number, "name": found.name}
    return {
        "section": "documents",
        "question": question,
        "consequence": _("The file and its passages are deleted. Existing answers keep their text."),
        "action": reverse("forget_document", args=[found.pk]),
        "back_url": reverse("document", args=[found.pk]),
        "fields": [("version", version.number)] if version else [],
        "act": _("Delete it"),
    }


def _receipt(found: Document) -> dict[str, object]:
    now = timezone.now()
    by = now + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
    passages = Chunk.objects.filter(version__document=found).values("exchange").distinct().count()
    vectors = ngettext("those of %(count)s passages", "those of %(count)s passages", passages)
    lines = [
        {
            "label": _("Passages removed from search and answers"),
            "figure": f"{format_number(passages)}, {format_datetime(now)}",
        },
        {"label": _("Vectors being removed and verified"), "figure": vectors % {"count": format_number(passages)}},
        {
            "label": _("Original files being removed"),
            "figure": format_number(found.versions.exclude(original="").count()),
        },
        {"label": _("Purged from disk by"), "figure": format_datetime(by)},
    ]
    return {"section": "documents", "lines": lines, "back_url": reverse("documents")}

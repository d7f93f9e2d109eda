"""Page of documents: list with progress, upload, cancel and retry."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.files import File
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.documents.deletion import cancel_document
from memory.documents.extraction import FORMATS
from memory.documents.publishing import retry_document
from memory.documents.queries import (
    DocumentStatus,
    active_documents,
    document_statuses,
    document_to_change,
    readable_document,
)
from memory.documents.uploads import normalise_name, upload_document
from memory.embeddings import remote_host
from memory.errors import CatoError, NotFoundError
from memory.index.embedding_policy import embedding_policy_of
from memory.models import Document, DocumentVersion
from memory.spaces import access
from memory.spaces.data_policy import DataPolicy
from memory.text import parse_uuid
from memory.views.document_rows import DocumentRow, UploadChip, document_row
from memory.views.forms import listed_space, parse_space, space_choices
from memory.views.http import PageRequest
from memory.views.paging import LongPaginator

_PAGE_SIZE = 50
_FORMATS = gettext_noop("Text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, EPUB, email and source code")


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Limits that the browser checks before an upload: extensions, formats as text, size and number of files."""

    extensions: str
    formats: str
    max_mb: int
    max_files: int


@require_http_methods(["GET", "POST"])
def documents(request: PageRequest) -> HttpResponse:
    """List the documents, newest first; a POST adds files."""
    if request.method == "POST":
        return _upload(request)
    return render(request, "memory/documents.html", _list_context(request))


@require_GET
def row(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Return one document as a row or, with `as=chip` or `as=kept`, as a chip; pages poll it while it is processed."""
    document = _document_row(request, state_for(request, document_id))
    shape = request.GET.get("as")
    template = "memory/_chip.html" if shape in ("chip", "kept") else "memory/_document_row.html"
    chip = UploadChip(document.name, document, is_kept=shape == "kept")
    response = render(request, template, {"row": document, "chip": chip})
    if not document.is_under_way:
        response["HX-Trigger"] = "document-ready"
    return response


@require_POST
def cancel(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Cancel the version that is being processed."""
    document = changeable(request, document_id)
    if cancel_document(_newest(document), by=request.user.pk):
        messages.success(request, _("Upload of %(name)s cancelled.") % {"name": document.name})
    else:
        messages.info(request, _("%(name)s has already been added. You can delete it.") % {"name": document.name})
    return redirect("documents")


@require_POST
def retry(request: PageRequest, document_id: uuid.UUID) -> HttpResponse:
    """Retry the failed version."""
    retry_document(_newest(changeable(request, document_id)))
    return redirect("documents")


def upload_limits() -> UploadLimits:
    """Return the limits of uploads."""
    conf = settings.CATO.documents
    return UploadLimits(
        extensions=",".join(f".{extension}" for format in FORMATS for extension in format.extensions),
        formats=_(_FORMATS),
        max_mb=conf.max_file_mb,
        max_files=conf.max_files,
    )


def changeable(request: PageRequest, document_id: uuid.UUID) -> Document:
    """Return the document if the person may change it: as its owner or administrator. Raises NotFoundError."""
    person = request.user
    readable = access.readable_space_ids(person.pk)
    return document_to_change(readable, document_id, by=person.pk, is_administrator=person.is_administrator)


def _list_context(request: PageRequest) -> dict[str, object]:
    space = listed_space(request)
    conf = settings.CATO.vector_store
    spaces = access.readable_space_ids(request.user.pk) if space is None else frozenset({space.pk})
    rows = active_documents(spaces).select_related("space", "owner").order_by("-created_at")
    page = LongPaginator(rows, _PAGE_SIZE).get_page(request.GET.get("page"))
    return {
        "section": "documents",
        "page": page,
        "rows": [_document_row(request, state) for state in document_statuses(page)],
        "upload_limits": upload_limits(),
        "places": space_choices(request.user.pk),
        "space": space,
        "chosen": request.GET.get("space", ""),
        "embedding_host": remote_host(),
        "has_embedding_policy": embedding_policy_of(conf.embedding_provider).kind != DataPolicy.ALL,
    }


def _upload(request: PageRequest) -> HttpResponse:
    files = request.FILES.getlist("files")
    limit = settings.CATO.documents.max_files
    if not files:
        return _upload_response(request, [UploadChip("", error=_("First choose the files to add."))])
    if len(files) > limit:
        sentence = _("Add at most %(most)s files at once, not %(count)s (documents.max_files).")
        error = sentence % {"most": limit, "count": len(files)}
        return _upload_response(request, [UploadChip("", error=error)])
    document_id = parse_uuid(request.POST.get("version_of", ""))
    document = changeable(request, document_id) if document_id else None
    if document is not None:
        files = files[:1]
    return _upload_response(request, [_store_upload(request, file, document) for file in files])


def _store_upload(request: PageRequest, file: File[bytes], document: Document | None) -> UploadChip:
    """Store the file as the next version of `document`, or of the document with its name."""
    name = document.name if document else normalise_name(file.name or "")
    try:
        uploaded = upload_document(
            file,
            name=name,
            space=document.space if document else parse_space(request) or access.personal_space(request.user.pk),
            owner_id=request.user.pk,
            source="upload",
            version_of=document,
        )
    except CatoError as error:
        return UploadChip(name, error=str(error))
    return UploadChip(name, _document_row(request, state_for(request, uploaded.version.document_id)))


def _upload_response(request: PageRequest, chips: Sequence[UploadChip]) -> HttpResponse:
    """Return the chips to htmx; without scripts, redirect to the list with errors as messages."""
    if request.htmx:
        response = render(request, "memory/_chips.html", {"chips": chips})
        response["HX-Trigger"] = "documents-changed"
        return response
    for chip in chips:
        if chip.error:
            messages.error(request, chip.error)
    added = sum(1 for chip in chips if chip.row)
    if added:
        messages.success(request, ngettext("%(count)s file added.", "%(count)s files added.", added) % {"count": added})
    return redirect(reverse("documents"))


def state_for(request: PageRequest, document_id: uuid.UUID) -> DocumentStatus:
    """Return the document's state if the person can read it. Raises NotFoundError."""
    states = document_statuses([readable_document(access.readable_space_ids(request.user.pk), document_id)])
    if not states:
        raise NotFoundError(_("Not found."))
    return states[0]


def _document_row(request: PageRequest, state: DocumentStatus) -> DocumentRow:
    return document_row(state, person_id=request.user.pk, is_administrator=request.user.is_administrator)


def _newest(document: Document) -> DocumentVersion:
    return document.versions.present().order_by("-number")[0]

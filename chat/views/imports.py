"""Importing conversations from other products' exports: one's own imports, how far each is, and adding another."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.errors import InvalidMessageError
from chat.imports import jobs
from chat.imports.formats import PROVIDERS
from chat.views.import_rows import row_of
from memory.api import PageRequest

_MOST_SHOWN = 20


@require_http_methods(["GET", "POST"])
def import_page(request: PageRequest) -> HttpResponse:
    """The last imports; by POST, a file is added to them."""
    if request.method == "GET":
        return render(request, "chat/import.html", _context(request))
    try:
        file = request.FILES.get("file")
        if file is None:
            raise InvalidMessageError(_("Choose the file that was exported first."))
        jobs.receive(file, owner_id=request.user.pk)
    except InvalidMessageError as error:
        return render(request, "chat/import.html", _context(request) | {"error": str(error)}, status=422)
    return redirect("import")


@require_GET
def row(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """One import, asked for again while it is under way; when it is over that is said to who hears the page."""
    shown = row_of(jobs.get_import(request.user.pk, import_id))
    return render(request, "chat/_import.html", {"row": shown, "says_so": not shown.is_under_way})


@require_POST
def cancel(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """Go no further with one's import."""
    stopped = jobs.cancel(jobs.get_import(request.user.pk, import_id))
    said = _("Cancelled. What was imported until then stays.") if stopped else _("Already finished.")
    messages.success(request, said)
    return redirect("import")


@require_POST
def retry(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """Go on with one's import that failed."""
    if not jobs.retry(jobs.get_import(request.user.pk, import_id)):
        messages.error(request, _("Its file is not kept any more. Choose it again."))
    return redirect("import")


def _context(request: PageRequest) -> dict[str, object]:
    return {
        "section": "settings",
        "providers": ", ".join(PROVIDERS),
        "most_mb": settings.CATO.chat.max_import_mb,
        "rows": [row_of(row) for row in jobs.list_imports(request.user.pk)[:_MOST_SHOWN]],
    }

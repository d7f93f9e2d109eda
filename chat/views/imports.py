"""The page of imports from exports of other products."""

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
from chat.views.import_rows import EMBEDDING, row_of
from memory.api import InvalidInputError, PageRequest, parse_space, space_choices

_MAX_ROWS = 20
# Chosen instead of a space.
_CHANNEL_PROJECTS = "channels"


@require_http_methods(["GET", "POST"])
def import_page(request: PageRequest) -> HttpResponse:
    """Show the last imports; POST uploads a file to import."""
    if request.method == "GET":
        return render(request, "chat/import.html", _context(request))
    try:
        file = request.FILES.get("file")
        if file is None:
            raise InvalidMessageError(_("Choose the file that was exported first."))
        has_channel_projects = request.POST.get("space") == _CHANNEL_PROJECTS
        space = None if has_channel_projects else parse_space(request)
        jobs.create_import(file, owner_id=request.user.pk, space=space, has_channel_projects=has_channel_projects)
    except InvalidInputError as error:
        return render(request, "chat/import.html", _context(request) | {"error": str(error)}, status=422)
    return redirect("import")


@require_GET
def row(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """Return the row of an import, which the page polls; its end is announced to screen readers once."""
    import_row = row_of(jobs.get_import(request.user.pk, import_id))
    has_ended = not import_row.is_under_way and EMBEDDING not in request.GET
    return render(request, "chat/_import.html", {"row": import_row, "says_so": has_ended})


@require_POST
def cancel(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """Cancel an import."""
    is_cancelled = jobs.cancel(jobs.get_import(request.user.pk, import_id))
    text = _("Cancelled. What was imported until then stays.") if is_cancelled else _("Already finished.")
    messages.success(request, text)
    return redirect("import")


@require_POST
def retry(request: PageRequest, import_id: uuid.UUID) -> HttpResponse:
    """Retry a failed import."""
    if not jobs.retry(jobs.get_import(request.user.pk, import_id)):
        messages.error(request, _("Its file is not kept any more. Choose it again."))
    return redirect("import")


def _context(request: PageRequest) -> dict[str, object]:
    return {
        "section": "settings",
        "providers": ", ".join(PROVIDERS),
        "most_mb": settings.CATO.chat.max_import_mb,
        "rows": [row_of(row) for row in jobs.list_imports(request.user.pk)[:_MAX_ROWS]],
        "places": space_choices(request.user.pk),
        "chosen": request.POST.get("space", ""),
        "error": "",
    }

"""The page on which extraction of statements is switched on and off for spaces."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat import services
from chat.rows.extraction import extraction_rows
from memory import api as memory
from memory.api import InvalidInputError, PageRequest

_CHANGES: dict[str, dict[str, bool]] = {
    "on": {"is_on": True, "is_paused": False},
    "off": {"is_on": False},
    "pause": {"is_paused": True},
    "resume": {"is_paused": False},
    "save": {},
    "retry": {},
}


@require_GET
def extraction(request: PageRequest) -> HttpResponse:
    """List the spaces with the state of their extraction."""
    context = {"section": "knowledge", "rows": extraction_rows(request.user.pk)}
    return render(request, "chat/extraction_settings.html", context)


@require_GET
def progress(request: PageRequest) -> HttpResponse:
    """Return how far extraction is, as a part of the page of statements."""
    return render(request, "chat/_extraction_progress.html", progress_context(request.user.pk))


def progress_context(person_id: uuid.UUID) -> dict[str, object]:
    """Return what `chat/_extraction_progress.html` needs."""
    rows = [row for row in extraction_rows(person_id) if row.is_on]
    return {"extraction": rows, "is_reading": any(row.is_reading for row in rows)}


@require_POST
def set_extraction(request: PageRequest, space_id: uuid.UUID) -> HttpResponse:
    """Switch extraction on or off, pause it, save its model and daily budget, or try again at once what failed.

    `from=knowledge` returns to the page of statements.
    """
    space = memory.get_space(request.user.pk, space_id)
    action = request.POST.get("action", "")
    changes = _CHANGES.get(action)
    try:
        if changes is None:
            raise InvalidInputError(_("Choose what to do."))
        services.set_knowledge(
            request.user.pk,
            space,
            model=request.POST.get("model"),
            daily_tokens=_parse_tokens(request.POST.get("daily_tokens")),
            **changes,
        )
    except InvalidInputError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("It is tried again now.") if action == "retry" else _("Saved."))
    return redirect("knowledge" if request.GET.get("from") == "knowledge" else "extraction")


def _parse_tokens(text: str | None) -> int | None:
    """Return the number, None if it was not sent. Raises InvalidInputError."""
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 12:
        raise InvalidInputError(_("Enter the tokens of a day as a whole number."))
    return int(text)

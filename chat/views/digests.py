"""The page on which a person switches their digest on and off."""

from __future__ import annotations

from datetime import time
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.digests import switching
from chat.digests.schedule import Schedule
from chat.rows.digests import EVERY_DAY, digest_row
from memory.api import InvalidInputError, PageRequest, parse_uuid


@require_http_methods(["GET", "POST"])
def digest(request: PageRequest) -> HttpResponse:
    """Show when the digest comes and of which spaces it tells; save it with `action=on`, or switch it off."""
    if request.method == "GET":
        return _render(request)
    if request.POST.get("action") == "off":
        switching.switch_off(request.user.pk)
        messages.success(request, _("The digest is switched off."))
        return redirect("digest")
    is_of_all = request.POST.get("of") != "chosen"
    chosen = [] if is_of_all else [id for text in request.POST.getlist("space") if (id := parse_uuid(text))]
    if not is_of_all and not chosen:
        return _render(request, space_error=_("Choose at least one space, or all."), status=422)
    try:
        switching.switch_on(request.user.pk, _parse_schedule(request), space_ids=chosen)
    except InvalidInputError as error:
        return _render(request, error=str(error), status=422)
    messages.success(request, _("Saved."))
    return redirect("digest")


def _parse_schedule(request: PageRequest) -> Schedule:
    """Return the chosen schedule. Raises InvalidInputError."""
    day = request.POST.get("day", "")
    try:
        at = time.fromisoformat(request.POST.get("at", "")).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError as error:
        raise InvalidInputError(_("Enter a time such as 08:00.")) from error
    if day != EVERY_DAY and not (day.isascii() and day.isdecimal() and len(day) == 1):
        raise InvalidInputError(_("Choose every day or a day of the week."))
    return Schedule(at, request.POST.get("time_zone", ""), None if day == EVERY_DAY else int(day))


def _render(request: PageRequest, *, error: str = "", space_error: str = "", status: int = 200) -> HttpResponse:
    sent: Any = request.POST if request.method == "POST" else None
    row = digest_row(request.user.pk, switching.get_digest(request.user.pk), sent=sent)
    context = {"section": "settings", "digest": row, "error": error, "space_error": space_error}
    return render(request, "chat/digest.html", context, status=status)

"""The page on which a person switches their digest on and off."""

from __future__ import annotations

from datetime import time
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.digests import switching
from chat.digests.schedule import Schedule, time_zones
from chat.rows.digests import EVERY_DAY, digest_row
from memory.api import InvalidInputError, PageRequest, parse_uuid

_NO_ERRORS = dict.fromkeys(("day", "at", "time_zone", "spaces"), "")


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
    schedule, errors = _parse_schedule(request.POST)
    if not is_of_all and not chosen:
        errors["spaces"] = _("Choose at least one space, or all.")
    if schedule is None or errors:
        return _render(request, errors=errors, status=422)
    try:
        switching.switch_on(request.user.pk, schedule, space_ids=chosen)
    except InvalidInputError as error:
        # Of what was sent, only the spaces are not checked yet.
        return _render(request, errors={"spaces": str(error)}, status=422)
    messages.success(request, _("Saved."))
    return redirect("digest")


def _parse_schedule(data: QueryDict) -> tuple[Schedule | None, dict[str, str]]:
    """Return the chosen schedule, or None and the errors by field."""
    at, day, zone = None, data.get("day", ""), data.get("time_zone", "")
    errors = {}
    try:
        at = time.fromisoformat(data.get("at", "")).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        errors["at"] = _("Enter a time such as 08:00.")
    if day not in (EVERY_DAY, *"0123456"):
        errors["day"] = _("Choose every day or a day of the week.")
    if zone not in time_zones():
        errors["time_zone"] = _("Choose a time zone from the list.")
    if at is None or errors:
        return None, errors
    return Schedule(at, zone, None if day == EVERY_DAY else int(day)), {}


def _render(request: PageRequest, *, errors: dict[str, str] | None = None, status: int = 200) -> HttpResponse:
    sent: Any = request.POST if request.method == "POST" else None
    row = digest_row(request.user.pk, switching.get_digest(request.user.pk), sent=sent)
    context = {"section": "settings", "digest": row, "errors": {**_NO_ERRORS, **(errors or {})}}
    return render(request, "chat/digest.html", context, status=status)

"""Buttons that set a person's feedback on an exchange."""

from __future__ import annotations

import re
import uuid

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memory.errors import NotFoundError
from memory.exchanges.feedback import feedback_for_exchanges, set_feedback
from memory.models import Exchange
from memory.spaces import access
from memory.views.http import PageRequest

_ELEMENT_ID = re.compile(r"[\w-]{1,80}")


@require_POST
def feedback(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Pin an exchange, mark it as not relevant, or clear that, for this person only.

    `at` identifies the buttons on the page, so that they keep the focus. `next` is the page to return to without
    scripts.
    """
    readable = access.readable_space_ids(request.user.pk)
    found = access.in_spaces(Exchange.objects.findable().filter(id=exchange_id), readable).first()
    if found is None:
        raise NotFoundError(_("Not found."))
    set_feedback(request.user.pk, found, request.POST.get("kind", ""))
    if not request.htmx:
        return redirect(_next(request, found))
    (standing,) = feedback_for_exchanges(request.user.pk, [exchange_id], spaces=readable).values()
    match = _ELEMENT_ID.fullmatch(request.GET.get("at", ""))
    context = {"standing": standing, "url": request.get_full_path(), "place": match[0] if match else "here"}
    return render(request, "memory/_feedback.html", context)


def _next(request: PageRequest, exchange: Exchange) -> str:
    """Return the path in the parameter `next`, or the exchange's page if it is missing or on another host."""
    path = request.GET.get("next", "")
    is_local = path.startswith("/") and url_has_allowed_host_and_scheme(path, None)
    return path if is_local else exchange.get_absolute_url()

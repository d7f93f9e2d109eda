"""Buttons that set a person's feedback on an exchange, and decide whether a later message supersedes it."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memory.errors import NotFoundError
from memory.exchanges import supersessions
from memory.exchanges.feedback import feedback_for_exchanges, set_feedback
from memory.models import Exchange, Feedback
from memory.spaces import access
from memory.views.forms import local_path, parse_passage, parse_place
from memory.views.http import PageRequest


@require_POST
def feedback(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Pin an exchange, mark it as not relevant, or clear that, for this person only.

    `also` are other chunks of the same passage, to which it applies as well. `at` identifies the buttons on
    the page, so that they keep the focus. `next` is the page to return to without scripts.
    """
    readable = access.readable_space_ids(request.user.pk)
    found, *others = (_readable(id, readable) for id in parse_passage(request, exchange_id))
    for exchange in (found, *others):
        set_feedback(request.user.pk, exchange, request.POST.get("kind", ""))
    if not request.htmx:
        if request.POST.get("kind") == Feedback.Kind.PINNED:
            messages.success(request, _("Pinned for you."))
        return redirect(local_path(request.GET.get("next", ""), found.get_absolute_url()))
    (changed,) = feedback_for_exchanges(request.user.pk, [exchange_id], spaces=readable).values()
    context = {"feedback": changed, "url": request.get_full_path(), "place": parse_place(request)}
    return render(request, "memory/_feedback_changed.html", context)


@require_POST
def supersession(request: PageRequest, exchange_id: uuid.UUID, later_id: uuid.UUID) -> HttpResponse:
    """Confirm or reject that a later message supersedes this one, or clear that, for this person only.

    `at` and `next` are those of `feedback`. The answer also marks the later message, which is in the same panel.
    """
    readable = access.readable_space_ids(request.user.pk)
    earlier, later = _readable(exchange_id, readable), _readable(later_id, readable)
    decision = request.POST.get("decision", "")
    supersessions.decide(request.user.pk, later=later, earlier=earlier, decision=decision)
    if not request.htmx:
        return redirect(local_path(request.GET.get("next", ""), earlier.get_absolute_url()))
    place = parse_place(request)
    context = {
        "decision": decision,
        "url": request.get_full_path(),
        "place": place,
        "later_place": place.replace(str(exchange_id), str(later_id)),
        "is_latest": supersessions.supersedes_any(request.user.pk, later),
    }
    # The citations of the earlier message change, too.
    response = render(request, "memory/_supersession_changed.html", context)
    response["HX-Trigger"] = "superseded"
    return response


def _readable(exchange_id: uuid.UUID, spaces: access.SpaceIds) -> Exchange:
    """Return the exchange if it can be found in these spaces. Raises NotFoundError."""
    found = access.in_spaces(Exchange.objects.citable().filter(id=exchange_id), spaces).first()
    if found is None:
        raise NotFoundError(_("Not found."))
    return found

"""The offer to supersede the sources of an answer, on the turn whose message corrects it."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat import access
from chat.errors import InvalidMessageError
from chat.models import Turn
from chat.rows.corrections import correction_row
from chat.turns import corrections
from memory.api import PageRequest, parse_number


@require_http_methods(["GET", "POST"])
def correction(request: PageRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Show the sources that a message of this person corrects; POST supersedes one, undoes that, or dismisses the offer.

    Other readers of the thread are shown nothing.
    """
    if request.method == "GET":
        turn = access.turn_by_id(request.user.pk, turn_id)
    else:
        turn = access.own_turn(request.user.pk, turn_id)
        _decide(turn, request.POST.get("supersede", ""), request.POST.get("undo", ""), request.POST.get("dismiss", ""))
        if not request.htmx:
            return redirect("turn", turn.id)
    context = {
        "section": "thread",
        "correction": correction_row(turn) if turn.author_id == request.user.pk else None,
        "turn_url": reverse("turn", args=[turn.id]),
    }
    return render(request, "chat/_correction.html" if request.htmx else "chat/correction.html", context)


def _decide(turn: Turn, supersede: str, undo: str, dismiss: str) -> None:
    """Do what the pressed button says; its value is the number of a source. Raises NotFoundError, InvalidMessageError."""
    if dismiss:
        corrections.dismiss(turn)
    elif (number := parse_number(supersede or undo)) is not None:
        corrections.supersede_source(turn, number, is_superseded=bool(supersede))
    else:
        raise InvalidMessageError(_("This action does not exist."))

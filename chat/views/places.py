"""The permanent address of an exchange: it leads to where it was said; and forgetting it."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from chat.models import Turn
from chat.services import forgetting
from chat.snapshots import WINDOW
from memory import spaces
from memory.requests import PageRequest
from memory.retrieval.places import places_of
from memory.services.opinions import standings
from memory.views.links import address_in_document


@require_GET
def exchange(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """The turn in its thread, the passage in its document; a note has a page of its own."""
    found = forgetting.readable_exchange(request.user.pk, exchange_id)
    turn = Turn.objects.filter(id=found.turn_id).first() if found.turn_id else None
    if turn is not None:
        return redirect(place_of(turn))
    place = places_of([found.id]).get(found.id)
    if place is not None:
        return redirect(address_in_document(place))
    may = forgetting.may_forget(request.user.pk, found, is_administrator=request.user.is_administrator)
    standing = standings(request.user.pk, [found.id], spaces=spaces.readable_by(request.user.pk))[found.id]
    return render(
        request,
        "memory/exchange.html",
        {
            "section": "search",
            "exchange": found,
            "space_name": found.space.shown_name,
            "forget_url": reverse("forget", args=[found.id]) if may else "",
            "standing": standing,
            "opinion_url": reverse("opinion", args=[found.id]),
        },
    )


def place_of(turn: Turn) -> str:
    """The address at which this turn is on the page, however many came after it."""
    page = reverse("thread", args=[turn.thread_id])
    later = Turn.objects.standing().filter(thread_id=turn.thread_id, position__gt=turn.position).count()
    window = f"?from={max(0, turn.position - WINDOW // 2)}" if later >= WINDOW else ""
    return f"{page}{window}#turn-{turn.id}"


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Ask once, then forget."""
    found = forgetting.readable_exchange(request.user.pk, exchange_id)
    if request.method == "GET":
        return render(
            request,
            "memory/confirm_forget.html",
            {
                "section": "thread",
                "question": _("Forget this exchange?"),
                "consequence": _(
                    "Nobody can recall or find it from now on, not even after a new import. "
                    "The words stay in the thread."
                ),
                "action": reverse("forget", args=[exchange_id]),
                "back_url": reverse("exchange", args=[exchange_id]),
            },
        )
    forgetting.forget_exchange(request.user.pk, exchange_id, is_administrator=request.user.is_administrator)
    messages.success(request, _("Forgotten. Nobody can recall or find it any more."))
    if found.thread_id is None:
        return redirect("search")
    return redirect(f"{reverse('thread', args=[found.thread_id])}#turn-{found.turn_id}")

"""Permanent URLs of turns and exchanges, and the page to forget an exchange."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_http_methods

from chat import access, services
from chat.models import Turn
from chat.realtime.sync import PAGE_SIZE
from chat.turns.uses import count_citing_answers
from memory import api as memory
from memory.api import (
    Exchange,
    PageRequest,
    feedback_for_exchanges,
    locations_of,
    parse_passage,
    passage_url,
    source_label,
)

_FORGOTTEN = gettext_noop("It will no longer be recalled or found, even if it is imported again.")
_IN_THREAD = gettext_noop("The text stays in the thread. Attached files are deleted.")
_IN_ORIGINAL = gettext_noop("The passage stays in the original file until the document is deleted.")
_NOTHING = gettext_noop("Its text is deleted.")


@require_GET
def turn(request: PageRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Redirect to the turn in its thread."""
    return redirect(turn_url(access.turn_by_id(request.user.pk, turn_id)))


@require_GET
def exchange(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Redirect to the exchange's turn, passage or statement; a note has its own page."""
    exchange = access.get_exchange(request.user.pk, exchange_id)
    turn = Turn.objects.filter(id=exchange.turn_id).first() if exchange.turn_id else None
    if turn is not None:
        return redirect(turn_url(_shown_version(turn)))
    location = locations_of([exchange.id]).get(exchange.id)
    if location is not None:
        return redirect(passage_url(location))
    if exchange.source == Exchange.Source.KNOWLEDGE:
        return redirect(reverse("knowledge", query={"at": exchange.id}, fragment=f"statement-{exchange.id}"))
    can_forget = access.can_forget(request.user.pk, exchange, is_administrator=request.user.is_administrator)
    readable = memory.readable_space_ids(request.user.pk)
    (feedback,) = feedback_for_exchanges(request.user.pk, [exchange.id], spaces=readable).values()
    return render(
        request,
        "memory/exchange.html",
        {
            "section": "search",
            "exchange": exchange,
            "source": source_label(exchange.source),
            "space_name": exchange.space.display_name,
            "forget_url": reverse("forget_exchange", args=[exchange.id]) if can_forget else "",
            "feedback": feedback,
            "feedback_url": reverse("feedback", args=[exchange.id]),
        },
    )


@require_GET
def uses(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Return in how many answers a passage is cited, as a line of its open item (parameter `also`: its other chunks)."""
    ids = [access.get_exchange(request.user.pk, id).id for id in parse_passage(request, exchange_id)]
    return render(request, "chat/_uses.html", {"count": count_citing_answers(request.user.pk, ids)})


def _shown_version(turn: Turn) -> Turn:
    """Return the version of this turn that its thread shows, or the turn itself if it shows none."""
    if turn.is_on_active_branch:
        return turn
    versions = Turn.objects.active_branch().filter(thread_id=turn.thread_id, parent_id=turn.parent_id)
    return versions.first() or turn


def turn_url(turn: Turn) -> str:
    """Return the URL of the page of the thread that contains this turn."""
    page = reverse("thread", args=[turn.thread_id])
    later = Turn.objects.active_branch().filter(thread_id=turn.thread_id, position__gt=turn.position).count()
    window = f"?from={max(0, turn.position - PAGE_SIZE // 2)}" if later >= PAGE_SIZE else ""
    return f"{page}{window}#turn-{turn.id}"


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then forget the exchange, or all chunks of a passage (parameter `also`)."""
    person, ids = request.user, parse_passage(request, exchange_id)
    exchange, *_others = (
        access.exchange_to_forget(person.pk, id, is_administrator=person.is_administrator) for id in ids
    )
    back_url = _next(request, reverse("exchange", args=[exchange_id]))
    if request.method == "GET":
        query = {"next": back_url, "also": ids[1:]}
        return render(
            request,
            "memory/confirm.html",
            {
                "section": "thread",
                "question": _("Forget this passage?") if len(ids) > 1 else _("Forget this exchange?"),
                "act": _("Forget it"),
                "consequence": f"{_(_FORGOTTEN)} {_(_remaining_text_note(exchange))}",
                "action": reverse("forget_exchange", args=[exchange_id], query=query),
                "back_url": back_url,
            },
        )
    for id in ids:
        services.forget_exchange(person.pk, id, is_administrator=person.is_administrator)
    messages.success(request, _("Forgotten. Nobody can recall or find it any more."))
    readable = Turn.objects.filter(thread__in=access.readable_threads(request.user.pk))
    turn = readable.filter(id=exchange.turn_id).first() if exchange.turn_id else None
    return redirect(turn_url(turn) if turn is not None else _next(request, reverse("search")))


def _next(request: PageRequest, default: str) -> str:
    url = request.GET.get("next", "")
    return url if url_has_allowed_host_and_scheme(url, None) else default


def _remaining_text_note(exchange: Exchange) -> str:
    if exchange.thread_id is not None:
        return _IN_THREAD
    return _IN_ORIGINAL if exchange.chunks.exists() else _NOTHING

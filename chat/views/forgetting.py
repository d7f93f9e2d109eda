"""The dialog that forgets a turn everywhere, and the receipts."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from chat import access, services
from chat.errors import ThreadBusyError
from chat.models import Receipt, Turn
from chat.rows.receipts import erased_by, receipt_row, scope_lines
from chat.views.exchanges import turn_url
from memory.api import LongPaginator, NotFoundError, PageRequest

_PAGE_SIZE = 20


@require_http_methods(["GET", "POST"])
def forget_everywhere(request: PageRequest, exchange_id: uuid.UUID) -> HttpResponse:
    """Show what forgetting the exchange of a turn everywhere removes; POST does it and leads to the receipt."""
    person = request.user
    turn = services.turn_to_forget(person.pk, exchange_id, is_administrator=person.is_administrator)
    is_readable = access.readable_threads(person.pk).filter(id=turn.thread_id).exists()
    back_url = turn_url(turn) if is_readable else reverse("search")
    if request.method == "GET":
        url = reverse("forget_everywhere", args=[exchange_id])
        context = {"section": "thread", "action": url, "back_url": back_url, "counts_url": "", "answers": 0}
        if request.htmx and "counted" not in request.GET:
            # The dialog opens at once and loads the counts.
            context["counts_url"] = f"{url}?counted=yes"
        else:
            scope = services.find_scope(person.pk, exchange_id, is_administrator=person.is_administrator)
            context |= {
                "lines": scope_lines(scope, person_id=person.pk),
                "answers": len(scope.answer_ids),
                "is_complete": scope.is_complete,
                "erased_by": erased_by(timezone.now()),
            }
        return render(request, "chat/forget_everywhere.html", context)
    try:
        receipt = services.forget_everywhere(
            person.pk,
            exchange_id,
            is_administrator=person.is_administrator,
            with_answers=request.POST.get("answers") == "yes",
        )
    except ThreadBusyError as error:
        messages.error(request, str(error))
        return redirect(back_url)
    messages.success(request, _("Forgotten everywhere. Receipt below."))
    return redirect(_place_of(receipt, person.pk))


@require_GET
def receipt(request: PageRequest, receipt_id: uuid.UUID) -> HttpResponse:
    """Show a receipt to the person who forgot something."""
    found = services.receipts_of(request.user.pk).filter(id=receipt_id).first()
    if found is None:
        raise NotFoundError
    context = {"section": "settings", "receipt": receipt_row(found)}
    return render(request, "chat/receipt.html", context)


@require_GET
def receipts(request: PageRequest) -> HttpResponse:
    """List the receipts of this person, newest first."""
    page = LongPaginator(services.receipts_of(request.user.pk), _PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"section": "settings", "page": page, "receipts": [receipt_row(one) for one in page]}
    return render(request, "chat/receipts.html", context)


def _place_of(receipt: Receipt, person_id: uuid.UUID) -> str:
    """Return the URL of the receipt at its turn, or of its own page if the person cannot see the turn any more."""
    readable = Turn.objects.active_branch().filter(thread__in=access.readable_threads(person_id))
    turn = readable.filter(id=receipt.turn_id).first()
    if turn is None:
        return reverse("receipt", args=[receipt.id])
    page = turn_url(turn).partition("#")[0]
    return f"{page}{'&' if '?' in page else '?'}receipt={receipt.id}#receipt-{receipt.id}"

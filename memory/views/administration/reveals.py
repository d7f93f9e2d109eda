"""Pages that start and end an administrator's temporary access to a space."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memory.administration import reveals
from memory.errors import InvalidInputError
from memory.views.administration.shared import space_label
from memory.views.forms import local_path
from memory.views.http import PageRequest, admin_required


@admin_required
@require_http_methods(["GET", "POST"])
def reveal(request: PageRequest, space_id: uuid.UUID) -> HttpResponse:
    """Ask for the reason, then start the reveal."""
    space = reveals.get_space(space_id)
    next_url = local_path(request.POST.get("next") or request.GET.get("next") or "", reverse("admin_exchanges"))
    reason = request.POST.get("reason", "")
    context = {
        "section": "admin",
        "space_id": space.pk,
        "space_label": space_label(space),
        "minutes": int(reveals.DURATION.total_seconds() // 60),
        "next": next_url,
        "reason": reason,
        "error": "",
    }
    if request.method == "GET":
        return render(request, "memory/reveal.html", context)
    try:
        reveals.reveal(space, by=request.user.pk, reason=reason)
    except InvalidInputError as error:
        return render(request, "memory/reveal.html", context | {"error": str(error)}, status=422)
    return redirect(next_url)


@admin_required
@require_POST
def end_reveal(request: PageRequest, reveal_id: int) -> HttpResponse:
    """End a reveal before its time."""
    if reveals.end_reveal(reveal_id, by=request.user.pk):
        messages.success(request, _("Access ended."))
    return redirect("admin_exchanges")

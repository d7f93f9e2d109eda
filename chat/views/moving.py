"""Where a thread lives: the spaces it may move to, what that means, and the move."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat import access, services
from chat.errors import ThreadBusyError
from memory.api import InvalidInputError, PageRequest, audience_text, parse_space, space_choices


@require_http_methods(["GET", "POST"])
def move(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Ask where to, saying what it means; by POST the thread moves."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    if request.method == "GET":
        places = space_choices(request.user.pk, thread.space_id)
        others = thread.turns.exclude(author_id=request.user.pk).count()
        context = {"section": "thread", "thread": thread, "places": places, "others": others}
        return render(request, "chat/move.html", context)
    try:
        to = parse_space(request)
        if to is not None:
            services.move_thread(thread, to=to, by=request.user.pk)
            messages.success(request, _("Moved. %(audience)s") % {"audience": audience_text(to)})
    except (InvalidInputError, ThreadBusyError) as error:
        messages.error(request, str(error))
    return redirect("thread", thread_id)

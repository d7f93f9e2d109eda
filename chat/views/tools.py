"""The tools of a thread: which servers are switched on, and the decision about a call that asks."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from chat import access
from chat.models import Thread, ToolServer
from chat.tools.offered import active_servers, choosable_servers, servers_for, set_thread_tools
from chat.tools.servers import server_tools
from chat.tools.uses import decide
from chat.views.exchanges import turn_url
from memory.api import PageRequest, parse_uuid


@require_http_methods(["GET", "POST"])
def thread_tools(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the tool servers that are allowed in this thread; POST switches them on and off."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    if request.method == "POST":
        set_thread_tools(thread, parse_server_ids(request.POST.getlist("tools")))
        return redirect("thread", thread_id)
    chosen = {server.id for server in active_servers(thread)}
    return _page(request, servers_for(thread.space), chosen, thread)


@require_http_methods(["GET", "POST"])
def new_thread_tools(request: PageRequest) -> HttpResponse:
    """Show all tool servers for a new thread; POST returns to it with the choice, which its first message carries."""
    if request.method == "POST":
        query = request.GET.copy()
        query.setlist("tools", request.POST.getlist("tools"))
        return redirect(f"{reverse('new_thread')}?{query.urlencode()}")
    return _page(request, choosable_servers(), set(parse_server_ids(request.GET.getlist("tools"))), None)


@require_POST
def decide_tool_use(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID, use_id: uuid.UUID) -> HttpResponse:
    """Allow or decline a call of a tool; every page of the thread shows who did."""
    turn = access.turn_to_decide(request.user.pk, thread_id, turn_id)
    decide(turn, use_id, by=request.user, is_allowed=request.POST.get("decision") == "allow")
    return HttpResponse(status=204) if request.htmx else redirect(turn_url(turn))


def parse_server_ids(values: Sequence[str]) -> list[uuid.UUID]:
    """Return the ids among these values."""
    return [id for id in map(parse_uuid, values) if id is not None]


def _page(
    request: PageRequest, servers: Sequence[ToolServer], chosen: set[uuid.UUID], thread: Thread | None
) -> HttpResponse:
    context = {
        "section": "thread" if thread else "new",
        "thread": thread,
        "servers": [(server, server_tools(server), server.id in chosen) for server in servers],
        "url": request.get_full_path(),
    }
    return render(request, "chat/tools.html", context)

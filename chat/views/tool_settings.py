"""The administrators' page of tool servers."""

from __future__ import annotations

import uuid

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from chat import signals
from chat.errors import ChatError, ToolServerError
from chat.models import ToolServer
from chat.tools.servers import add_server, allow_server, list_servers, remove_server, reread_server, server_tools
from memory.api import PageRequest, Space, admin_required


class ServerForm(forms.Form):
    """Name, address and token of a new server; a token is not shown again."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=40)
    address = forms.URLField(
        label=gettext_lazy("Address"),
        max_length=300,
        assume_scheme="https",
        help_text=gettext_lazy("Of an MCP server over streamable HTTP, such as https://mcp.example.org/mcp."),
    )
    token = forms.CharField(
        label=gettext_lazy("Token"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Sent as a bearer token. Kept encrypted. Empty if the server needs none."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )


@admin_required
@require_http_methods(["GET", "POST"])
def tool_servers(request: PageRequest) -> HttpResponse:
    """List the tool servers; POST adds one whose tools can be read."""
    form = ServerForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        try:
            server = add_server(fields["name"], fields["address"], fields["token"])
        except ChatError as error:
            form.add_error("address" if isinstance(error, ToolServerError) else None, str(error))
        else:
            _note(request, server)
            messages.success(request, _("Added. Choose below where its tools can be used."))
            return redirect("tool_servers")
    spaces = list(Space.objects.exclude(kind=Space.Kind.PERSONAL).order_by("kind", "name"))
    rows = [
        {
            "server": server,
            "tools": server_tools(server),
            "places": [(ToolServer.PERSONAL, _("Personal threads"), ToolServer.PERSONAL in server.allowed_in)]
            + [(space.id, space.display_name, str(space.id) in server.allowed_in) for space in spaces],
        }
        for server in list_servers()
    ]
    context = {"tab": "tools", "form": form, "servers": rows}
    return render(request, "chat/tool_servers.html", context, status=422 if form.errors else 200)


@admin_required
@require_POST
def change_tool_server(request: PageRequest, server_id: uuid.UUID) -> HttpResponse:
    """Read a server's tools again, remove it, or allow it in the chosen places."""
    server = get_object_or_404(ToolServer, id=server_id)
    action = request.POST.get("action", "")
    if action == "remove":
        remove_server(server.id)
        messages.success(request, _("Removed. Nothing is sent to it any more."))
    elif action == "read":
        _reread(request, server)
    else:
        allow_server(server, request.POST.getlist("allowed_in"))
        messages.success(request, _("Saved."))
    _note(request, server)
    return redirect("tool_servers")


def _reread(request: PageRequest, server: ToolServer) -> None:
    try:
        changes = reread_server(server)
    except ToolServerError as error:
        messages.error(request, str(error))
        return
    parts = [
        (_("New: %(names)s."), changes.added),
        (_("No longer offered: %(names)s."), changes.removed),
        (_("Changed: %(names)s."), changes.changed),
    ]
    said = [sentence % {"names": ", ".join(names)} for sentence, names in parts if names]
    messages.success(request, " ".join(said) or _("The tools are as they were."))


def _note(request: PageRequest, server: ToolServer) -> None:
    signals.tool_server_changed.send(sender=None, by=request.user.pk, name=server.name)

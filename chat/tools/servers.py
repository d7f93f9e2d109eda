"""The tool servers of an installation: add, read, allow and remove them. Only administrators do this."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.encryption import encrypt
from chat.errors import InvalidMessageError, ToolServerError
from chat.models import ToolServer
from chat.tools.connection import ConnectionTarget, ServerTool, read_tools, target_of
from memory.api import Space, clean_text


@dataclass(frozen=True, slots=True)
class ToolChanges:
    """How the tools of a server differ from those that were read before."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def list_servers() -> list[ToolServer]:
    """Return all servers by name, with a row for each command of the configuration file."""
    known = set(ToolServer.objects.values_list("name", flat=True))
    for configured in settings.CATO.tools.commands:
        if configured.name not in known:
            ToolServer.objects.get_or_create(name=configured.name)
    return list(ToolServer.objects.all())


def add_server(name: str, address: str, token: str) -> ToolServer:
    """Add a server whose tools can be read. Raises InvalidMessageError, and ToolServerError with the reason."""
    name, address = clean_text(name).strip(), clean_text(address).strip()
    if not name or len(name) > 40:
        raise InvalidMessageError(_("Write a name of at most 40 characters."))
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise InvalidMessageError(_("Write an address that begins with https:// or http://."))
    names = ToolServer.objects.values_list("name", flat=True)
    if name.casefold() in {existing.casefold() for existing in names}:
        raise InvalidMessageError(_("There is already a tool server with this name."))
    tools = asyncio.run(read_tools(ConnectionTarget(name, address, token.strip())))
    return ToolServer.objects.create(
        name=name,
        address=address,
        encrypted_token=encrypt(token.strip()),
        tools=[tool.as_json() for tool in tools],
        read_at=timezone.now(),
    )


def reread_server(server: ToolServer) -> ToolChanges:
    """Read the tools of a server again. Raises ToolServerError; the tools stay as they were, with the reason."""
    try:
        tools = asyncio.run(read_tools(target_of(server)))
    except ToolServerError as error:
        ToolServer.objects.filter(id=server.id).update(error=str(error)[:300])
        raise
    changes = _compare(server_tools(server), tools)
    ToolServer.objects.filter(id=server.id).update(
        tools=[tool.as_json() for tool in tools], read_at=timezone.now(), error=""
    )
    return changes


def server_tools(server: ToolServer) -> list[ServerTool]:
    """Return the tools of a server as they were last read."""
    return [ServerTool(**tool) for tool in server.tools]


def allow_server(server: ToolServer, places: Iterable[str]) -> None:
    """Allow a server in these places: ids of shared spaces, or "personal" for all threads in personal spaces.

    Raises InvalidMessageError for anything else.
    """
    chosen = list(dict.fromkeys(places))
    shared = {str(id) for id in Space.objects.exclude(kind=Space.Kind.PERSONAL).values_list("id", flat=True)}
    if not set(chosen) <= shared | {ToolServer.PERSONAL}:
        raise InvalidMessageError(_("One of these spaces does not exist any more. Load the page again."))
    ToolServer.objects.filter(id=server.id).update(allowed_in=chosen)


@transaction.atomic
def remove_server(server_id: uuid.UUID) -> None:
    """Remove a server; answers that used it keep what it returned."""
    ToolServer.objects.filter(id=server_id).delete()


def is_allowed_in(server: ToolServer, space: Space) -> bool:
    """Return whether the tools of a server can be switched on in threads of this space."""
    place = ToolServer.PERSONAL if space.kind == Space.Kind.PERSONAL else str(space.id)
    return place in server.allowed_in


def _compare(before: Iterable[ServerTool], after: Iterable[ServerTool]) -> ToolChanges:
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    return ToolChanges(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
    )

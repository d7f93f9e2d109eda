"""Which tools an answer may use: those of the servers that are switched on in its thread and allowed in its space.

A tool that changes something needs the permission of a person, who must be looking at the thread. So it is offered only for
messages that were typed on a page, never to API clients.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from chat.models import Thread, ToolServer, Turn
from chat.tools.connection import ServerTool
from chat.tools.servers import is_allowed_in, server_tools
from memory.api import Space, estimate_tokens

# Names of functions in OpenAI's format.
_MAX_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool under the name by which the model calls it."""

    function_name: str
    server_id: uuid.UUID
    server_name: str
    tool: ServerTool

    @property
    def definition(self) -> dict[str, Any]:
        """The tool in OpenAI's format."""
        about = f"{self.tool.title}. {self.tool.description}" if self.tool.title != self.tool.name else None
        function = {
            "name": self.function_name,
            "description": about or self.tool.description,
            "parameters": self.tool.parameters,
        }
        return {"type": "function", "function": function}


def servers_for(space: Space) -> list[ToolServer]:
    """Return the servers that can be switched on in threads of this space."""
    return [server for server in ToolServer.objects.all() if server.tools and is_allowed_in(server, space)]


def choosable_servers() -> list[ToolServer]:
    """Return the servers that can be switched on in some threads."""
    return [server for server in ToolServer.objects.all() if server.tools and server.allowed_in]


def active_servers(thread: Thread) -> list[ToolServer]:
    """Return the servers that are switched on in a thread, and still allowed there."""
    if not thread.tool_server_ids:
        return []
    return [server for server in servers_for(thread.space) if str(server.id) in thread.tool_server_ids]


def offered_tools(turn: Turn) -> list[OfferedTool]:
    """Return the tools for the answer to a turn, as far as their definitions take at most an eighth of the context."""
    can_ask = _is_from_page(turn)
    remaining = settings.CATO.llm.context_tokens // 8
    offered: dict[str, OfferedTool] = {}
    for server in active_servers(turn.thread):
        for tool in server_tools(server):
            if not tool.is_read_only and not can_ask:
                continue
            found = OfferedTool(_function_name(server, tool, offered), server.id, server.name, tool)
            remaining -= estimate_tokens(json.dumps(found.definition, ensure_ascii=False))
            if remaining < 0:
                return list(offered.values())
            offered[found.function_name] = found
    return list(offered.values())


def is_still_offered(turn_id: uuid.UUID, tool: OfferedTool) -> bool:
    """Return whether a tool may still be called for a turn, as the turn, its thread and the server are now."""
    turn = Turn.objects.select_related("thread__space").get(id=turn_id)
    if turn.stop_requested or not turn.is_running:
        return False
    servers = [server for server in active_servers(turn.thread) if server.id == tool.server_id]
    return any(tool.tool in server_tools(server) for server in servers)


def set_thread_tools(thread: Thread, server_ids: Sequence[uuid.UUID]) -> None:
    """Switch on these servers in a thread, as far as they are allowed there, and all others off."""
    allowed = [str(server.id) for server in servers_for(thread.space) if server.id in server_ids]
    Thread.objects.filter(id=thread.id).update(tool_server_ids=allowed)


def _is_from_page(turn: Turn) -> bool:
    """Return whether its author typed the message on a page, as this turn or as one whose answer was regenerated."""
    if turn.api_token_id is not None:
        return False
    versions = Turn.objects.filter(thread_id=turn.thread_id, parent_id=turn.parent_id, author_id=turn.author_id)
    return turn.is_typed or versions.filter(message=turn.message, is_typed=True).exists()


def _function_name(server: ToolServer, tool: ServerTool, taken: dict[str, OfferedTool]) -> str:
    """Return a name that only this tool has: those of server and tool, in the characters that are allowed."""
    base = _NOT_IN_NAMES.sub("_", f"{server.name}__{tool.name}")[: _MAX_NAME - 3].strip("_") or "tool"
    name, number = base, 1
    while name in taken or name in ("search_memory", "read_more", "list_documents"):
        number += 1
        name = f"{base}_{number}"
    return name

"""Connections to tool servers, over streamable HTTP or to a command. Each reading and each call has a connection of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from chat.encryption import decrypt
from chat.errors import ToolServerError
from chat.models import ToolServer
from memory.api import clean_json, clean_text

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

log = logging.getLogger(__name__)

_MAX_TOOLS = 64  # of one server
_MAX_DESCRIPTION, _MAX_PARAMETERS = 1_000, 8_000  # characters
MAX_RESULT_CHARS = 20_000
_NAME = re.compile(r"[\w./-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server. `parameters` is the JSON schema of its arguments; `is_read_only`: it changes nothing, as it says."""

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    is_read_only: bool

    def as_json(self) -> dict[str, Any]:
        """Return the tool as `ToolServer.tools` stores it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConnectionTarget:
    """Where a tool server is: an address with a token, or a command with its environment."""

    name: str
    address: str = ""
    token: str = field(default="", repr=False)
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def target_of(server: ToolServer) -> ConnectionTarget:
    """Return where this server is. Raises ToolServerError if its command is no longer configured."""
    if server.address:
        return ConnectionTarget(server.name, server.address, decrypt(server.encrypted_token))
    for configured in settings.CATO.tools.commands:
        if configured.name == server.name:
            return ConnectionTarget(
                server.name,
                command=tuple(configured.command),
                environment={key: value.get_secret_value() for key, value in configured.environment.items()},
            )
    raise ToolServerError(_("%(name)s is no longer in the configuration.") % {"name": server.name})


async def read_tools(target: ConnectionTarget) -> list[ServerTool]:
    """Return the tools of a server that can be called, at most 64. Raises ToolServerError."""
    found: list[ServerTool] = []
    async with _connected(target) as client:
        cursor = None
        while len(found) < _MAX_TOOLS:
            page = await client.list_tools(cursor=cursor)
            found += filter(None, map(_server_tool, page.tools))
            cursor = page.next_cursor
            if not cursor:
                break
    return found[:_MAX_TOOLS]


async def call_tool(target: ConnectionTarget, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """Call a tool; return the text of its result, at most 20,000 characters, and whether it is an error.

    Raises ToolServerError if the server cannot be reached or does not answer in time.
    """
    async with _connected(target) as client:
        result = await client.call_tool(name, dict(arguments))
    return _result_text(result), bool(result.is_error)


@asynccontextmanager
async def _connected(target: ConnectionTarget) -> AsyncIterator[Client]:
    """Connect for the length of the block, which has `tools.timeout_seconds`. Raises ToolServerError for every failure."""
    # Importing the package takes most of a second, which would block the event loop.
    await asyncio.to_thread(import_module, "mcp")
    try:
        async with asyncio.timeout(settings.CATO.tools.timeout_seconds), _client(target) as client:
            yield client
    except TimeoutError as error:
        raise ToolServerError(_("%(name)s does not answer.") % {"name": target.name}) from error
    # The package raises errors of five libraries, most of them in groups; whatever it is, the answer goes on without.
    except Exception as error:
        cause = _first_cause(error)
        log.info("a tool server failed: %s", type(cause).__name__)
        raise (cause if isinstance(cause, ToolServerError) else _failure(target, cause)) from error


@asynccontextmanager
async def _client(target: ConnectionTarget) -> AsyncIterator[Client]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    from chat.tools.guarded_http import new_client

    info = Implementation(name="cato", version="1")
    if target.command:
        program, *arguments = target.command
        command = StdioServerParameters(command=program, args=arguments, env=dict(target.environment))
        async with Client(command, client_info=info) as client:
            yield client
        return
    conf = settings.CATO.tools
    async with new_client(target.token, timeout=conf.timeout_seconds, internal_hosts=conf.internal_hosts) as http:
        transport = streamable_http_client(target.address, http_client=http)
        async with Client(transport, client_info=info, cache=None) as client:
            yield client


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error in nested groups; that of the guarded connection if there is one."""
    while isinstance(error, BaseExceptionGroup):
        guarded = error.subgroup(ToolServerError)
        error = (guarded or error).exceptions[0]
    return error


def _failure(target: ConnectionTarget, cause: BaseException) -> ToolServerError:
    if target.command:
        sentence = _("The command of %(name)s failed: %(reason)s")
        return ToolServerError(sentence % {"name": target.name, "reason": _short(cause)})
    sentence = _("%(host)s cannot be used as an MCP server: %(reason)s")
    host = urlsplit(target.address).netloc
    return ToolServerError(sentence % {"host": host, "reason": _short(cause)})


def _short(cause: BaseException) -> str:
    lines = str(cause).strip().splitlines()
    return clean_text(lines[0])[:160] if lines else type(cause).__name__


def _server_tool(tool: Tool) -> ServerTool | None:
    """Return a tool as it is stored; None if its name or its parameters cannot be used."""
    try:
        parameters = clean_json(tool.input_schema or {"type": "object", "properties": {}})
    except ValueError:
        return None
    if not _NAME.fullmatch(tool.name) or len(json.dumps(parameters)) > _MAX_PARAMETERS:
        return None
    notes = tool.annotations
    return ServerTool(
        name=tool.name,
        title=clean_text(tool.title or (notes and notes.title) or tool.name)[:100],
        description=clean_text(tool.description or "")[:_MAX_DESCRIPTION],
        parameters=parameters,
        is_read_only=bool(notes and notes.read_only_hint),
    )


def _result_text(result: CallToolResult) -> str:
    """Return the texts of a result; of other content only its kind."""
    parts = [part.text if part.type == "text" else f"[{part.type}]" for part in result.content]
    if not any(part.type == "text" for part in result.content) and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return clean_text("\n\n".join(parts))[:MAX_RESULT_CHARS]

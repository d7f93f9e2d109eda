"""The MCP server and its tools. The only module that imports the package `mcp`, which is heavy."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import Field

from cato_web.api_auth import require_scope
from cato_web.mcp import tools
from cato_web.mcp.tools import AddResult, Caller, ForgetResult, SearchResult, ThreadResult
from chat.executors import run_in_recall_thread
from memory.api import MAX_RESULTS, CatoError

P = ParamSpec("P")
R = TypeVar("R")

_INSTRUCTIONS = (
    "Cato is a team's memory: its conversations with models, its notes and its documents. Search it before you answer "
    "that you do not know something about the team, and name your source. " + tools.UNTRUSTED_NOTE
)
caller: contextvars.ContextVar[Caller] = contextvars.ContextVar("caller")

SpaceName = Annotated[
    str | None, Field(description='name of a group, "own" or "team"; for the default, see the description of the tool')
]


async def search_memory(
    query: Annotated[str, Field(description="keywords or a question")],
    k: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="maximum number of results")] = 5,
    space: SpaceName = None,
) -> SearchResult:
    """Search conversations, notes and documents by meaning and by keywords.

    Searches everything that the user can read, or one space. Each result names its time, author, thread or document,
    and who can read it. Results that are not relevant are marked, not omitted.
    """
    return await _call_tool("read", tools.search_memory, query, k, space)


async def get_thread(
    thread_id: Annotated[str, Field(description="id of a conversation, from search_memory")],
    last: Annotated[int, Field(ge=1, le=tools.MAX_TURNS, description="number of turns, from the end")] = 50,
) -> ThreadResult:
    """Read the last turns of a conversation, oldest first, each with its author and time."""
    return await _call_tool("read", tools.get_thread, thread_id, last)


async def add_memory(
    text: Annotated[str, Field(description="the text, understandable without its context")],
    space: SpaceName = None,
) -> AddResult:
    """Store a text in memory, so that it is recalled in the user's conversations and found by search.

    It is stored in the user's personal space, which nobody else can read, or in the named group or team.
    """
    return await _call_tool("write", tools.add_memory, text, space)


async def forget_memory(
    exchange_id: Annotated[str, Field(description="id of an exchange, from search_memory")],
) -> ForgetResult:
    """Forget one exchange permanently: nobody can find or recall it any more. Ask the user first."""
    return await _call_tool("write", tools.forget_memory, exchange_id)


def server() -> MCPServer[Any]:
    """Create the server with its tools; the caller is in `caller`."""
    server_app: MCPServer[Any] = MCPServer(
        "cato", title="Cato", instructions=_INSTRUCTIONS, log_level="WARNING", subscriptions=False
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    server_app.add_tool(search_memory, title="Search memory", annotations=reads)
    server_app.add_tool(get_thread, title="Read a conversation", annotations=reads)
    adds = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    server_app.add_tool(add_memory, title="Remember", annotations=adds)
    forgets = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    server_app.add_tool(forget_memory, title="Forget", annotations=forgets)
    return server_app


@asynccontextmanager
async def over_http() -> AsyncIterator[StreamableHTTPSessionManager]:
    """Run the server for HTTP. It is stateless, so any process can handle any request."""
    server_app = server()
    # `cato_web.mcp.asgi` has checked host and origin.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server_app.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
    async with server_app.session_manager.run():
        yield server_app.session_manager


def over_stdio(by: Caller) -> None:
    """Serve on standard input and output until the input ends."""
    caller.set(by)
    asyncio.run(server().run_stdio_async())


async def _call_tool(scope: str, tool: Callable[Concatenate[Caller, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Check the scope and run the tool in a thread. Raises ToolError."""
    by = caller.get()
    try:
        require_scope(by.scopes, scope)
        return await run_in_recall_thread(tool, by, *args, **kwargs)
    except CatoError as error:
        raise ToolError(str(error)) from error

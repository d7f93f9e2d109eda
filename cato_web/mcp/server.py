"""The MCP server: the tools as models see them, and who calls. The only home of the package `mcp`, which is heavy."""

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
    "Cato is a team's memory: everything its people said to models, their notes and their documents. Search it before "
    "you say that you do not know something about them, and say where you have it from. " + tools.UNTRUSTED_NOTE
)
caller: contextvars.ContextVar[Caller] = contextvars.ContextVar("caller")

SpaceName = Annotated[
    str | None, Field(description='name of a group, "own" or "team"; left away, see the description of the tool')
]


async def search_memory(
    query: Annotated[str, Field(description="what to look for, in words or as a question")],
    k: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="how many results")] = 5,
    space: SpaceName = None,
) -> SearchResult:
    """Find what was said, noted or written in documents, by meaning and by words.

    Looks in everything the person may read, or in one space. Each result tells when it was said, by whom, in which
    thread or document, and who can read it. Results that are not relevant are marked, not left out.
    """
    return await _call_tool("read", tools.search_memory, query, k, space)


async def get_thread(
    thread_id: Annotated[str, Field(description="the id of a conversation, as search_memory gives it")],
    last: Annotated[int, Field(ge=1, le=tools.MOST_TURNS, description="how many turns, from the end")] = 50,
) -> ThreadResult:
    """Read a conversation that the person may read: its last turns, oldest first, each with who said it and when."""
    return await _call_tool("read", tools.get_thread, thread_id, last)


async def add_memory(
    text: Annotated[str, Field(description="what to remember; it should be understood without its context")],
    space: SpaceName = None,
) -> AddResult:
    """Remember a text for the person, so that it comes back in their conversations and searches.

    It is kept in the person's own space, which nobody else reads, or in the group or team that is named.
    """
    return await _call_tool("write", tools.add_memory, text, space)


async def forget_memory(
    exchange_id: Annotated[str, Field(description="the id of something remembered, as search_memory gives it")],
) -> ForgetResult:
    """Forget one thing for good: nobody can find or recall it any more. This cannot be undone; ask the person first."""
    return await _call_tool("write", tools.forget_memory, exchange_id)


def server() -> MCPServer[Any]:
    """The server with its tools; who calls them is in `caller`."""
    made: MCPServer[Any] = MCPServer(
        "cato", title="Cato", instructions=_INSTRUCTIONS, log_level="WARNING", subscriptions=False
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    made.add_tool(search_memory, title="Search memory", annotations=reads)
    made.add_tool(get_thread, title="Read a conversation", annotations=reads)
    adds = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    made.add_tool(add_memory, title="Remember", annotations=adds)
    forgets = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    made.add_tool(forget_memory, title="Forget", annotations=forgets)
    return made


@asynccontextmanager
async def over_http() -> AsyncIterator[StreamableHTTPSessionManager]:
    """What answers requests to /mcp while the block runs. It keeps nothing between them: any process answers any."""
    made = server()
    # Host and origin are looked at before anything comes here.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    made.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
    async with made.session_manager.run():
        yield made.session_manager


def over_stdio(by: Caller) -> None:
    """Answer on standard input and output until the input ends."""
    caller.set(by)
    asyncio.run(server().run_stdio_async())


async def _call_tool(scope: str, verb: Callable[Concatenate[Caller, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Have the verb done for whoever calls; what goes wrong is told as the tool's error."""
    by = caller.get()
    try:
        require_scope(by.scopes, scope)
        return await run_in_recall_thread(verb, by, *args, **kwargs)
    except CatoError as error:
        raise ToolError(str(error)) from error

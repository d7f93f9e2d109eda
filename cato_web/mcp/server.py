"""The MCP server: tools, resources and prompts. The package `mcp` is heavy, so the first request loads this module."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

import mcp_types as types
from django.utils.translation import gettext as _
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from cato_web import VERSION
from cato_web.accounts.acting_token import separate_actor
from cato_web.accounts.models import User
from cato_web.api_auth import check_token, require_scope
from cato_web.errors import INTERNAL_ERROR
from cato_web.mcp import resources
from cato_web.mcp.caller import UNTRUSTED_NOTE, Caller
from cato_web.mcp.results import AnswerResult
from cato_web.mcp.tools import TOOLS, Tool, wait_for_answer
from chat.errors import PermissionDeniedError
from chat.executors import run_in_recall_thread
from chat.search.arguments import describe_error
from memory.api import CatoError, NotFoundError

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_INSTRUCTIONS = (
    "Cato is a team's memory: its conversations with models, its notes and its documents. Search it before you answer "
    "that you do not know something about the team, and name your source. " + UNTRUSTED_NOTE
)
_MARKDOWN = "text/markdown"
caller: contextvars.ContextVar[Caller] = contextvars.ContextVar("caller")


def server() -> Server[Any]:
    """Create the server; the caller is in `caller`."""
    return Server(
        "cato",
        version=VERSION,
        title="Cato",
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=_input_schema,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_resource_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )


@asynccontextmanager
async def over_http() -> AsyncIterator[StreamableHTTPSessionManager]:
    """Run the server for HTTP. It is stateless, so any process can handle any request."""
    # `cato_web.mcp.asgi` has checked host and origin.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    manager = StreamableHTTPSessionManager(server(), json_response=True, stateless=True, security_settings=unchecked)
    async with manager.run():
        yield manager


def over_stdio(by: Caller) -> None:
    """Serve on standard input and output until the input ends."""
    caller.set(by)
    asyncio.run(_run_stdio())


async def _run_stdio() -> None:
    app = server()
    async with stdio_server() as (reader, writer):
        await app.run(reader, writer, app.create_initialization_options())


async def _list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """List the tools that the caller's scopes allow."""
    scopes = caller.get().scopes
    return types.ListToolsResult(tools=[_tool(name, tool) for name, tool in TOOLS.items() if tool.scope in scopes])


def _tool(name: str, tool: Tool) -> types.Tool:
    return types.Tool(
        name=name,
        title=tool.title,
        description="\n\n".join(
            " ".join(paragraph.split()) for paragraph in (tool.arguments.__doc__ or "").split("\n\n")
        ),
        input_schema=_schema(tool.arguments),
        output_schema=tool.result.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.changes,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.is_idempotent or not tool.changes,
            open_world_hint=False,
        ),
    )


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of the arguments, without the description, which the tool has."""
    return {key: value for key, value in arguments.model_json_schema().items() if key not in ("title", "description")}


def _input_schema(name: str) -> dict[str, Any] | None:
    return _schema(TOOLS[name].arguments) if name in TOOLS else None


async def _call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    by, tool = caller.get(), TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:60]}.")
    try:
        require_scope(by.scopes, tool.scope)
        arguments = tool.arguments.model_validate(params.arguments or {})
        result = await run_in_recall_thread(_run_for, by, tool.run, arguments)
        if isinstance(result, AnswerResult):
            result = await wait_for_answer(by, result, run_in_recall_thread)
    except ValidationError as error:
        return _failure(describe_error(error, tool.arguments))
    except CatoError as error:
        return _failure(str(error))
    except Exception:  # the library would send the text of the exception to the client
        log.exception("unexpected error in a tool of /mcp")
        return _failure(_(INTERNAL_ERROR))
    return types.CallToolResult(
        content=[types.TextContent(text=result.model_dump_json())], structured_content=result.model_dump(mode="json")
    )


def _run_for(by: Caller, call: Callable[Concatenate[Caller, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the function for this caller. Raises InvalidTokenError and PermissionDeniedError."""
    if by.token_id is not None:
        # It can have been revoked while the request waited for a thread.
        check_token(by.token_id)
    # A server on standard input and output runs for days, during which the account can change.
    person = User.objects.filter(pk=by.person_id, is_active=True).first()
    if person is None:
        raise PermissionDeniedError(_("Your account was deactivated."))
    with separate_actor(by.token_id):
        return call(replace(by, is_administrator=person.is_administrator), *args, **kwargs)


def _failure(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def _list_resources(context: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    entries, after = await _read(resources.list_resources, params.cursor if params else None)
    found = [
        types.Resource(uri=row.uri, name=row.title, title=row.title, description=row.description, mime_type=_MARKDOWN)
        for row in entries
    ]
    return types.ListResourcesResult(resources=found, next_cursor=after)


async def _list_resource_templates(
    context: Any, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    kinds = (
        ("thread", "Conversation", resources.THREAD_URI),
        ("document", "Document", resources.DOCUMENT_URI),
        ("statement", "Statement", resources.STATEMENT_URI),
    )
    templates = [
        types.ResourceTemplate(name=name, title=title, uri_template=f"{uri}{{id}}", mime_type=_MARKDOWN)
        for name, title, uri in kinds
    ]
    return types.ListResourceTemplatesResult(resource_templates=templates)


async def _read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    text = await _read(resources.read_resource, params.uri)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=params.uri, mime_type=_MARKDOWN, text=text)]
    )


async def _list_prompts(context: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    entries, after = await _read(resources.list_prompts, params.cursor if params else None)
    argument = types.PromptArgument(name="text", description="What follows the prompt.", required=False)
    prompts = [types.Prompt(name=row.name, description=row.description, arguments=[argument]) for row in entries]
    return types.ListPromptsResult(prompts=prompts, next_cursor=after)


async def _get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    arguments = params.arguments or {}
    if unknown := sorted(arguments.keys() - {"text"}):
        raise MCPError(types.INVALID_PARAMS, f"There is no argument {unknown[0][:60]}; use text.")
    text = await _read(resources.get_prompt, params.name, arguments.get("text", ""))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(messages=[message])


async def _read(call: Callable[Concatenate[Caller, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function that reads in a thread. Raises MCPError, also without the scope to read."""
    by = caller.get()
    try:
        require_scope(by.scopes, "read")
        return await run_in_recall_thread(lambda: _run_for(by, call, *args, **kwargs))
    except NotFoundError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from error
    except CatoError as error:
        raise MCPError(types.INVALID_REQUEST, str(error)) from error
    except Exception as error:  # the library would send the text of the exception to the client
        log.exception("unexpected error in a request to /mcp")
        raise MCPError(types.INTERNAL_ERROR, _(INTERNAL_ERROR)) from error

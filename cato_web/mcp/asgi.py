"""The ASGI application at /mcp: checks host, origin and token, and loads the server on the first request."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.translation import gettext as _

from cato_web.api_auth import Principal, authenticate_header
from cato_web.errors import RETRY_AFTER, status_of
from cato_web.mcp.caller import Caller
from cato_web.middleware import is_same_origin
from cato_web.oauth import addresses
from chat.executors import run_in_db_thread
from memory.api import CatoError

PATHS = ("/mcp", "/mcp/")


class HttpError(Exception):
    """An error response."""

    def __init__(self, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class McpApp:
    """The MCP server of this process, started by the first request and stopped with the process, in one task."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[Any] | None = None
        self._stopped = asyncio.Event()

    async def application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle one request, as an ASGI application."""
        try:
            principal = await _authenticate(scope)
        except HttpError as error:
            await _send_error(send, error)
            return
        # Loading takes half a second, and memory that processes without MCP clients save.
        server = await asyncio.to_thread(importlib.import_module, "cato_web.mcp.server")
        person = principal.person
        server.caller.set(Caller(person.pk, person.is_administrator, principal.scopes, principal.token_id))
        manager = await asyncio.shield(self._ensure_started(server))
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Stop the server."""
        self._stopped.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _ensure_started(self, server: Any) -> asyncio.Future[Any]:
        if self._manager is None or (self._task is not None and self._task.done()):
            self._manager = asyncio.get_running_loop().create_future()
            # An empty context: with the request's, all later requests would have its principal.
            self._task = asyncio.create_task(self._run(server, self._manager), context=contextvars.Context())
        return self._manager

    async def _run(self, server: Any, manager: asyncio.Future[Any]) -> None:
        try:
            async with server.over_http() as session_manager:
                manager.set_result(session_manager)
                await self._stopped.wait()
        finally:
            manager.cancel()  # releases waiting requests if the server could not start


async def _authenticate(scope: dict[str, Any]) -> Principal:
    """Check host, origin, token and method; return the principal. Raises HttpError."""
    if not settings.CATO.api.enabled:
        raise HttpError(404, _("There is nothing at %(path)s.") % {"path": scope["path"]})
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    domain, _port = split_domain_port(headers.get(b"host", ""))
    if not validate_host(domain, settings.ALLOWED_HOSTS):
        raise HttpError(421, _("Unknown host; check server.public_url."))
    # Only browsers send an Origin; pages of other sites are rejected.
    if b"origin" in headers and not is_same_origin(scope):
        raise HttpError(403, _("Cross-origin requests are not allowed."))
    if b"authorization" not in headers:
        message = _("This needs a token: create one in Cato's settings and give it to your app.")
        raise HttpError(401, message, _challenge(scope["scheme"], headers))
    try:
        principal = await run_in_db_thread(authenticate_header, headers[b"authorization"], accepts_connected_apps=True)
    except CatoError as error:
        status, _code = status_of(error)
        extra_headers = [_challenge(scope["scheme"], headers, "invalid_token")] if status == 401 else []
        if status in RETRY_AFTER:
            extra_headers.append((b"retry-after", RETRY_AFTER[status].encode()))
        raise HttpError(status, str(error), *extra_headers) from error
    if scope["method"] != "POST":
        raise HttpError(405, _("Stateless endpoint: only POST is supported."), (b"allow", b"POST"))
    return principal


def _challenge(scheme: str, headers: Mapping[bytes, str], error: str = "") -> tuple[bytes, bytes]:
    """Return the header that says how to authenticate, and where apps without a token begin to connect."""
    address = addresses.origin(scheme, headers.get(b"host", ""))
    fields = [f'error="{error}"'] if error else []
    if addresses.is_offered_at(address):
        fields.append(f'resource_metadata="{address}{addresses.METADATA_PATH}{addresses.RESOURCE_PATH}"')
    return b"www-authenticate", f"Bearer {', '.join(fields)}".strip().encode()


async def _send_error(send: Any, error: HttpError) -> None:
    data = json.dumps({"error": str(error)}, ensure_ascii=False).encode()
    content_headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(data)).encode()),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": [*content_headers, *error.headers]})
    await send({"type": "http.response.body", "body": data})


tools = McpApp()

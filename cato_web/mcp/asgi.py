"""The way in to /mcp: host, origin and token are looked at first; what answers is loaded when somebody first asks."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import json
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.translation import gettext as _

from cato_web.api_auth import Principal, authenticate_header
from cato_web.errors import RETRY_AFTER, status_of
from cato_web.mcp.tools import Caller
from cato_web.middleware.origin import is_same_origin
from chat.executors import run_in_db_thread
from memory.api import CatoError

PATHS = ("/mcp", "/mcp/")
_CHALLENGE = (b"www-authenticate", b"Bearer")


class HttpError(Exception):
    """A request that is not answered: its status and a sentence."""

    def __init__(self, status: int, sentence: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class McpApp:
    """What answers in this process. It begins with the first request and is ended with the process, in one task."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[Any] | None = None
        self._ended = asyncio.Event()

    async def application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request to /mcp, as an ASGI application."""
        try:
            principal = await _let_in(scope)
        except HttpError as error:
            await _say(send, error)
            return
        # Half a second to load, and memory that a process without such callers does not need.
        server = await asyncio.to_thread(importlib.import_module, "cato_web.mcp.server")
        server.caller.set(Caller(principal.person.pk, principal.person.is_administrator, principal.scopes))
        manager = await asyncio.shield(self._begun(server))
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End it with the process."""
        self._ended.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _begun(self, server: Any) -> asyncio.Future[Any]:
        if self._manager is None or (self._task is not None and self._task.done()):
            self._manager = asyncio.get_running_loop().create_future()
            # A context of its own: that of the request would make everybody who comes later its caller.
            self._task = asyncio.create_task(self._keep(server, self._manager), context=contextvars.Context())
        return self._manager

    async def _keep(self, server: Any, manager: asyncio.Future[Any]) -> None:
        try:
            async with server.over_http() as answering:
                manager.set_result(answering)
                await self._ended.wait()
        finally:
            manager.cancel()  # for those who wait where it could not begin


async def _let_in(scope: dict[str, Any]) -> Principal:
    """Who comes. Raises HttpError."""
    if not settings.CATO.api.enabled:
        raise HttpError(404, _("There is nothing at %(path)s.") % {"path": scope["path"]})
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    domain, _port = split_domain_port(headers.get(b"host", ""))
    if not validate_host(domain, settings.ALLOWED_HOSTS):
        raise HttpError(421, _("Unknown host; check server.public_url."))
    # Programs send none; what a page of another site sends is none of ours.
    if b"origin" in headers and not is_same_origin(scope):
        raise HttpError(403, _("Cross-origin requests are not allowed."))
    if b"authorization" not in headers:
        sentence = _("This needs a token: make one in Cato's settings and give it to your program.")
        raise HttpError(401, sentence, _CHALLENGE)
    try:
        principal = await run_in_db_thread(authenticate_header, headers[b"authorization"])
    except CatoError as error:
        status, _code = status_of(error)
        sent = [(_CHALLENGE[0], b'Bearer error="invalid_token"')] if status == 401 else []
        if status in RETRY_AFTER:
            sent.append((b"retry-after", RETRY_AFTER[status].encode()))
        raise HttpError(status, str(error), *sent) from error
    if scope["method"] != "POST":
        raise HttpError(405, _("Stateless endpoint: only POST is supported."), (b"allow", b"POST"))
    return principal


async def _say(send: Any, error: HttpError) -> None:
    data = json.dumps({"error": str(error)}, ensure_ascii=False).encode()
    kind = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": [*kind, *error.headers]})
    await send({"type": "http.response.body", "body": data})


tools = McpApp()

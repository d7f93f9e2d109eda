"""The ASGI application: HTTP, sockets, MCP and lifespan."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
_django = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (needs the app registry)

from cato_web import lifespan, urls  # noqa: E402, F401  (the first page must not wait for its import)
from cato_web.cors import Cors  # noqa: E402
from cato_web.mcp import asgi  # noqa: E402
from cato_web.middleware import NoStore, OriginValidator  # noqa: E402
from chat.realtime.routing import router  # noqa: E402

_django_app, _mcp_app = Cors(NoStore(_django)), NoStore(asgi.tools.application)
_socket_app = OriginValidator(AuthMiddlewareStack(router))


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Dispatch a connection by protocol and path."""
    match scope["type"]:
        case "http" if scope["path"] in asgi.PATHS:
            await _mcp_app(scope, receive, send)
        case "http":
            await _django_app(scope, receive, send)
        case "websocket":
            await _socket_app(scope, receive, send)
        case "lifespan":
            await lifespan.run(receive, send)

"""The web process: pages by HTTP, frames by socket, tools at /mcp, and what must begin and end with the process."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
_django = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (models may be imported only now)

from cato_web import lifespan  # noqa: E402
from cato_web.mcp import asgi  # noqa: E402
from cato_web.middleware.caching import NoStore  # noqa: E402
from cato_web.middleware.origin import OriginValidator  # noqa: E402
from chat.realtime.routing import router  # noqa: E402

_pages, _tools = NoStore(_django), NoStore(asgi.tools.application)
_sockets = OriginValidator(AuthMiddlewareStack(router))


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Hand a connection to whoever speaks its protocol."""
    match scope["type"]:
        case "http" if scope["path"] in asgi.PATHS:
            await _tools(scope, receive, send)
        case "http":
            await _pages(scope, receive, send)
        case "websocket":
            await _sockets(scope, receive, send)
        case "lifespan":
            await lifespan.run(receive, send)

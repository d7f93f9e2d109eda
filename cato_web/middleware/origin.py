"""Origin check of sockets: scheme, host and port must match, not only the host."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

_WRONG_ORIGIN = 4403


class OriginValidator:
    """ASGI middleware that accepts sockets of other origins and closes them with 4403."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a connection."""
        if is_same_origin(scope):
            await self.inner(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": _WRONG_ORIGIN})


def is_same_origin(scope: dict[str, Any]) -> bool:
    """Return whether the Origin header is the address that the request was sent to, or a trusted origin."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    origin, host = headers.get(b"origin", ""), headers.get(b"host", "")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:  # invalid, such as http://[::1
        return False
    secure = scope.get("scheme") in ("wss", "https")
    return bool(host) and parts.scheme == ("https" if secure else "http") and parts.netloc.lower() == host.lower()

"""Lets a socket in only from a page of ours: the full origin is held against the address asked, not its host alone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

_WRONG_ORIGIN = 4403


class OriginValidator:
    """ASGI middleware: accepts and closes with 4403 what another site's page opened."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if is_same_origin(scope):
            await self.inner(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": _WRONG_ORIGIN})


def is_same_origin(scope: dict[str, Any]) -> bool:
    """Whether the Origin of a handshake or request is the very address it was sent to, or a trusted one."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    origin, host = headers.get(b"origin", ""), headers.get(b"host", "")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:  # an address that is none, such as http://[::1
        return False
    secure = scope.get("scheme") in ("wss", "https")
    return bool(host) and parts.scheme == ("https" if secure else "http") and parts.netloc.lower() == host.lower()

"""Cross-origin requests to the APIs, from pages of the origins that the configuration names."""

from __future__ import annotations

from typing import Any

from django.conf import settings

_PATHS = ("/v1/", "/api/")
_METHODS = b"GET, POST, PUT, PATCH, DELETE"
# What a page may read of a response, besides its body and the headers that are always readable.
_EXPOSED = b"X-Cato-Thread, X-Request-ID, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
_PREFLIGHT_SECONDS = b"600"


class Cors:
    """ASGI middleware that lets pages of `api.cors_origins` call the APIs, with a token and without cookies.

    It answers preflight requests itself, because they have no token. Requests of other origins are not changed: without
    the headers, the browser keeps the response from the page.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a request."""
        origin = _allowed_origin(scope)
        if not origin:
            await self.inner(scope, receive, send)
            return
        headers = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        request = dict(scope["headers"])
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in request:
            # Clients send headers of their own, such as their version. They give no access: the token does.
            requested = request.get(b"access-control-request-headers", b"")
            headers += [
                (b"access-control-allow-methods", _METHODS),
                (b"access-control-allow-headers", requested),
                (b"access-control-max-age", _PREFLIGHT_SECONDS),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers.append((b"access-control-expose-headers", _EXPOSED))

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = message | {"headers": [*message.get("headers", ()), *headers]}
            await send(message)

        await self.inner(scope, receive, send_with_headers)


def _allowed_origin(scope: dict[str, Any]) -> bytes:
    """Return the origin of the page that makes the request, if it may; otherwise nothing."""
    conf = settings.CATO.api
    if not conf.enabled or not scope["path"].startswith(_PATHS):
        return b""
    origin: bytes = dict(scope["headers"]).get(b"origin", b"")
    return origin if origin.decode("latin-1") in conf.cors_origins else b""

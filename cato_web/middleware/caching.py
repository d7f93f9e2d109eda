"""ASGI middleware against caching of responses."""

from __future__ import annotations

from typing import Any

_HEADER = b"cache-control"


class NoStore:
    """Send `Cache-Control: no-store` with every response that has no such header.

    Pages, fragments, exports and API responses depend on permissions at the time of the request. Static files and
    images have immutable URLs and a header of their own.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a connection."""

        async def send_with_header(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(name.lower() == _HEADER for name, _value in headers):
                    message = message | {"headers": [*headers, (_HEADER, b"no-store")]}
            await send(message)

        await self.inner(scope, receive, send_with_header)

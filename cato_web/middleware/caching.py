"""Keeps answers out of the caches of browsers and proxies."""

from __future__ import annotations

from typing import Any

_HEADER = b"cache-control"


class NoStore:
    """ASGI middleware: sends `Cache-Control: no-store` with every response that says nothing about caching itself.

    Pages, fragments, exports and the answers of all APIs show what one person may read at that moment. Static files
    and pictures have addresses that never change their content, and their own header.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def send_with_header(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(name.lower() == _HEADER for name, _value in headers):
                    message = message | {"headers": [*headers, (_HEADER, b"no-store")]}
            await send(message)

        await self.inner(scope, receive, send_with_header)

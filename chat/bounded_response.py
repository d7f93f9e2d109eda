"""HTTP responses whose body has a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx2


def limit_body(response: httpx2.Response, max_bytes: int, error: Exception) -> None:
    """Let reading the body raise `error` once it is longer than `max_bytes`."""
    response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream), max_bytes, error)


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response. Raises `error` if it is longer than `max_bytes`."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int, error: Exception) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._max_bytes:
                raise self._error
            yield part

    async def aclose(self) -> None:
        """Close the response."""
        await self._stream.aclose()

"""The HTTP client of model endpoints: no cookies, no redirects, and responses of limited size.

Its transport is aiohttp, which reads streams with half the CPU time of httpx.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, cast

from django.conf import settings

from chat.llm import failures

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from httpx2 import AsyncClient, Response

CONNECT_TIMEOUT = 10.0  # seconds
_MAX_STREAM_BYTES, _MAX_BODY_BYTES = 200_000_000, 8_000_000


def new_http_client() -> AsyncClient:
    """Return a client for the event loop that first uses it."""
    from httpx2 import AsyncClient, Timeout
    from httpx_aiohttp.httpx2 import AiohttpTransport

    return AsyncClient(
        transport=AiohttpTransport(client=_new_session),
        timeout=Timeout(settings.CATO.llm.timeout_seconds, connect=CONNECT_TIMEOUT),
        # A redirect would send the prompt to a host that nobody configured.
        follow_redirects=False,
        # No cookies, neither here nor in the session of the transport: one client serves everybody, and a cookie would
        # link the requests of different people.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        # A few compressed kB can expand to gigabytes; the hook rejects responses that are compressed anyway.
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_limit_response]},
    )


def is_timeout(error: BaseException) -> bool:
    """Return whether this error, or its cause, says that time ran out.

    The transport also calls a connection that was closed a time-out, with aiohttp's error as the cause.
    """
    from aiohttp import ClientError
    from httpx2 import TimeoutException

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ClientError | TimeoutError):
        error, cause = cause, cause.__cause__
    return isinstance(cause or error, TimeoutError | TimeoutException)


def _new_session() -> ClientSession:
    from aiohttp import ClientSession, DummyCookieJar, TCPConnector

    # Each answer being generated has a connection; their number is limited where answers start.
    return ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar(), trust_env=True)


async def _limit_response(response: Response) -> None:
    """Limit the size of a response. Raises ModelError, also while it is read."""
    from httpx2 import AsyncByteStream

    host = response.url.netloc.decode()
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise failures.compressed(host)
    source = cast("AsyncByteStream", response.stream)
    is_answer = response.is_success and response.url.path.endswith("/chat/completions")
    limit = _MAX_STREAM_BYTES if is_answer else _MAX_BODY_BYTES

    class Bounded(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for received in source:
                size += len(received)
                if size > limit:
                    raise failures.too_long(host)
                yield received

        async def aclose(self) -> None:
            await source.aclose()

    response.stream = Bounded()

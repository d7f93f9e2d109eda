"""HTTP connections to model endpoints: no cookies, no redirects, and responses of limited size.

Answers are streamed by aiohttp: the openai package takes 8 ms to send a request, and more for each event. The package
lists the models.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings

from chat.errors import EndpointReason, ModelError
from chat.llm import failures
from chat.llm.endpoint import ModelEndpoint
from chat.llm.reasons import MAX_BODY_BYTES, read_reason, reason_in

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from httpx2 import AsyncClient, Response, Timeout

log = logging.getLogger(__name__)

_ERROR_TIMEOUT = 2.0  # seconds for the body of an error, which is told without it then
_CONNECT_TIMEOUT = 10.0  # seconds
_SLOW_TIMEOUT = 300.0  # seconds
# An idle connection is reused for less than the five seconds after which uvicorn and llama.cpp close theirs: a request sent
# at that moment would be lost.
_KEEP_ALIVE = 4.0  # seconds
_MAX_STREAM_BYTES, _MAX_BODY_BYTES = 200_000_000, 8_000_000
# A few compressed kB can expand to gigabytes, so compressed responses are rejected.
_UNCOMPRESSED = {"Accept-Encoding": "identity"}
_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientSession] = WeakKeyDictionary()


@asynccontextmanager
async def post(endpoint: ModelEndpoint, path: str, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Post JSON, and read the response in parts as they arrive; the connection ends with the block.

    Raises ModelError for a status other than 2xx and for a response that is too long, TimeoutError, and ConnectionError if
    the endpoint cannot be reached or the connection ends early; all of them also while reading.
    """
    from aiohttp import ClientError, ClientTimeout

    headers = _UNCOMPRESSED | {"Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    waiting = ClientTimeout(total=None, connect=_CONNECT_TIMEOUT, sock_read=settings.CATO.llm.timeout_seconds)
    request = _session().post(
        f"{endpoint.base_url}{path}",
        data=json.dumps(body).encode(),
        headers=headers,
        timeout=waiting,
        # A redirect would send the prompt to a host that nobody configured.
        allow_redirects=False,
    )
    try:
        async with request as response:
            if not 200 <= response.status < 300:
                raise await _status_error(response, endpoint, body)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise failures.compressed(endpoint.host)
            yield _parts(response, endpoint.host)
    except ClientError as error:
        if isinstance(error, TimeoutError):
            raise
        raise ConnectionError(str(error)) from error


async def _status_error(response: ClientResponse, endpoint: ModelEndpoint, request: dict[str, Any]) -> ModelError:
    """Return the error for a status other than 2xx, and log what the endpoint said."""
    received = await _error_body(response)
    # Its text is compared with the whole prompt.
    reason = await asyncio.to_thread(read_reason, received, endpoint, request["messages"])
    _log_reason(endpoint, f"HTTP {response.status}", reason)
    retry_after = response.headers.get("retry-after", "")
    return failures.status_error(
        response.status, retry_after, host=endpoint.host, model=request["model"], reason=reason
    )


async def event_error(
    event: dict[str, Any], endpoint: ModelEndpoint, request: dict[str, Any], *, has_begun: bool
) -> ModelError:
    """Return the error for an event with an error in a response with status 200, and log what the endpoint said.

    `has_begun`: a part of the answer has arrived.
    """
    reason = await asyncio.to_thread(reason_in, event, endpoint, request["messages"])
    _log_reason(endpoint, "with an error event", reason)
    error = event["error"]
    status = error.get("code") if isinstance(error, dict) else None
    return failures.event_error(status, host=endpoint.host, model=request["model"], reason=reason, has_begun=has_begun)


def _log_reason(endpoint: ModelEndpoint, how: str, reason: EndpointReason) -> None:
    said = ", ".join(text for text in (reason.code, reason.kind, reason.message) if text)
    log.warning("%s answered %s: %s", endpoint.name or "the first endpoint", how, said or "no reason")


async def _error_body(response: ClientResponse) -> bytes:
    """Return the body of an error, at most `MAX_BODY_BYTES` of it; nothing if it is compressed."""
    from aiohttp import ClientError

    body = b""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return body
    # A body that breaks off or does not end has no reason that can be read.
    with suppress(ClientError, TimeoutError):
        async with asyncio.timeout(_ERROR_TIMEOUT):
            while len(body) < MAX_BODY_BYTES and (part := await response.content.readany()):
                body += part
    return body[:MAX_BODY_BYTES]


async def _parts(response: ClientResponse, host: str) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _MAX_STREAM_BYTES:
            raise failures.too_long(host)
        yield part


def _session() -> ClientSession:
    """Return the session of this event loop, to which its connections belong."""
    from aiohttp import ClientSession, DummyCookieJar, TCPConnector

    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        # Each answer being generated has a connection; their number is limited where answers start. A cookie would link
        # the requests of different people.
        _sessions[loop] = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE),
            cookie_jar=DummyCookieJar(),
            trust_env=True,
            auto_decompress=False,
        )
    return _sessions[loop]


async def close_session() -> None:
    """Close the session of this event loop."""
    session = _sessions.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


def slow_timeout() -> Timeout:
    """Return the timeout of a request whose response begins when all of its work is done."""
    from httpx2 import Timeout

    return Timeout(max(_SLOW_TIMEOUT, settings.CATO.llm.timeout_seconds), connect=_CONNECT_TIMEOUT)


def new_http_client() -> AsyncClient:
    """Return an HTTP client for the openai package, for the event loop that first uses it."""
    from httpx2 import AsyncClient, Timeout

    return AsyncClient(
        timeout=Timeout(settings.CATO.llm.timeout_seconds, connect=_CONNECT_TIMEOUT),
        follow_redirects=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers=_UNCOMPRESSED,
        event_hooks={"response": [_limit_response]},
    )


async def _limit_response(response: Response) -> None:
    """Limit the size of a response. Raises ModelError, also while it is read."""
    from chat.bounded_response import limit_body

    host = response.url.netloc.decode()
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise failures.compressed(host)
    limit_body(response, _MAX_BODY_BYTES, failures.too_long(host))

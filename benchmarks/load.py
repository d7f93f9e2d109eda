"""Load from one event loop: a model endpoint that streams at little cost, and people with open pages."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.server import Client
from tests.topology import free_port

TOKEN = "word"  # each token contains it, and nothing else that a page receives does
PATIENCE = 90.0  # seconds
_PARAGRAPH = 40  # tokens


@dataclass
class StreamEndpoint:
    """A model endpoint whose answers have `tokens` tokens, `rate` a second, or all at once if `rate` is 0."""

    port: int = field(default_factory=free_port)
    tokens: int = 20
    rate: float = 0.0
    requests: int = 0
    _connections: set[asyncio.WriteTransport] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a Cato that uses it, and does not limit what people do."""
        return {
            "OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "load", "CATO_LLM_MODEL": "fake",
            "CATO_CHAT_MESSAGES_PER_MINUTE": "100000", "CATO_API_REQUESTS_PER_MINUTE": "100000",
            "CATO_CHAT_CONCURRENT_ANSWERS": "100000", "CATO_CHAT_SOCKETS_PER_PERSON": "100000",
        }  # fmt: skip

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve in the running event loop."""
        server = await asyncio.get_running_loop().create_server(lambda: _Request(self), "127.0.0.1", self.port)
        try:
            yield
        finally:
            server.close()
            # Else a client would send its next request on a connection that nobody reads.
            for connection in list(self._connections):
                connection.abort()
            self._connections.clear()


class _Request(asyncio.Protocol):
    """A connection: each request is answered by a stream of events."""

    def __init__(self, endpoint: StreamEndpoint) -> None:
        self._endpoint = endpoint
        self._received = b""
        self._answer: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._endpoint._connections.add(transport)

    def connection_lost(self, exception: Exception | None) -> None:
        self._endpoint._connections.discard(self._transport)
        if self._answer is not None:
            self._answer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, is_whole, body = self._received.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
        if is_whole and len(body) >= length:
            self._received = b""
            self._endpoint.requests += 1
            self._answer = asyncio.get_running_loop().create_task(self._stream())

    async def _stream(self) -> None:
        endpoint, clock = self._endpoint, asyncio.get_running_loop().time
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        started = clock()
        for number in range(endpoint.tokens):
            if endpoint.rate:
                await asyncio.sleep(max(0.0, started + number / endpoint.rate - clock()))
            end = "\n\n" if number % _PARAGRAPH == _PARAGRAPH - 1 else " "
            self._send(_chunk({"content": f"{TOKEN}{number}{end}"}))
        self._send(_chunk({}, "stop") + b"data: [DONE]\n\n")
        self._transport.write(b"0\r\n\r\n")

    def _send(self, event: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(event), event))


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


@dataclass
class Page:
    """An open page: when frames with tokens arrived (event loop time), and whether its socket was closed early."""

    frames: list[float] = field(default_factory=list)
    is_closed: bool = False
    socket: ClientConnection | None = None
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def first_token(self) -> float:
        """Return when the first token arrived. Raises TimeoutError after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            await self._arrived.wait()
        return self.frames[0]

    async def send(self, message: str) -> None:
        """Send a message to the server."""
        assert self.socket is not None
        await self.socket.send(message)

    async def read(self) -> None:
        """Receive until cancelled."""
        assert self.socket is not None
        clock = asyncio.get_running_loop().time
        try:
            async for frame in self.socket:
                if TOKEN in str(frame):
                    self.frames.append(clock())
                    self._arrived.set()
        except ConnectionClosed:
            self.is_closed = True

    def restart(self) -> None:
        """Forget the frames of an earlier answer."""
        self.frames.clear()
        self._arrived.clear()


class Visitor:
    """A person of a running Cato, with any number of open pages."""

    def __init__(self, person: Client) -> None:
        self._cookies = dict(person.http.cookies)
        self._url = person.url
        headers = {"X-CSRFToken": self._cookies["cato_csrf"], "Referer": person.url}
        self._http = httpx.AsyncClient(base_url=person.url, cookies=self._cookies, headers=headers, timeout=120)

    async def post(self, message: str, thread: str | None = None) -> str:
        """Post a message, in a new thread unless `thread` (its path) is given; return the path of its thread."""
        path = f"{thread}/messages" if thread else "/"
        response = await self._http.post(path, data={"message": message, "client_key": str(uuid.uuid4())})
        assert response.status_code == 302, response.text[:300]
        return response.headers["location"].partition("#")[0]

    @asynccontextmanager
    async def open(self, thread: str) -> AsyncIterator[Page]:
        """Open the page of a thread."""
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        headers = {"Cookie": cookie, "Origin": self._url}
        async with open_page(f"{self._url.replace('http', 'ws')}/ws{thread}", {"have": {}}, headers) as page:
            yield page

    async def close(self) -> None:
        await self._http.aclose()


@asynccontextmanager
async def open_page(url: str, hello: object, headers: dict[str, str] | None = None) -> AsyncIterator[Page]:
    """Open a socket, send `hello` as JSON, and read until the block ends."""
    # With a bounded queue, frames that nobody reads any more would delay the closing by ten seconds.
    async with connect(
        url, additional_headers=headers, proxy=None, compression=None, max_size=None, max_queue=None
    ) as socket:
        page = Page(socket=socket)
        await page.send(json.dumps(hello))
        reading = asyncio.create_task(page.read())
        try:
            yield page
        finally:
            reading.cancel()


@dataclass
class Usage:
    """CPU seconds of processes between two moments, by name."""

    processes: dict[str, psutil.Process]
    _before: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Remember the present state."""
        self._before = {name: _cpu(process) for name, process in self.processes.items()}

    def spent(self) -> dict[str, float]:
        """Return the CPU seconds since `begin`."""
        return {name: _cpu(process) - self._before[name] for name, process in self.processes.items()}

    def memory(self) -> dict[str, float]:
        """Return the memory of each process (proportional set size, MiB)."""
        return {name: process.memory_full_info().pss / 2**20 for name, process in self.processes.items()}


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def pin(process: psutil.Process, core: int) -> None:
    """Let all threads of a process, and those that they start, run on this core only."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, {core})

"""A bare relay: websockets that pass the tokens of a model endpoint on, with the web process's uvicorn settings.

    python -m benchmarks.relay --port N --endpoint URL --client aiohttp|openai|openai-aiohttp

Each message to a socket requests an answer, and each of its tokens is sent as a frame.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import openai
import uvicorn

_MESSAGES = [{"role": "user", "content": "Say something."}]
_FRAME = '<div id="answer" hx-swap-oob="beforeend"><p>{}</p></div>'


class Relay:
    """The ASGI application."""

    def __init__(self, endpoint: str, client: str) -> None:
        self._endpoint, self._client_name = endpoint, client
        self._client: Any = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Relay answers until the client disconnects."""
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            async for token in self._tokens():
                await send({"type": "websocket.send", "text": _FRAME.format(token)})

    def _tokens(self) -> AsyncIterator[str]:
        return self._aiohttp_tokens() if self._client_name == "aiohttp" else self._openai_tokens()

    async def _aiohttp_tokens(self) -> AsyncIterator[str]:
        self._client = self._client or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        body = {"model": "fake", "messages": _MESSAGES, "stream": True}
        async with self._client.post(f"{self._endpoint}/chat/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])["choices"][0]["delta"].get("content") or ""

    async def _openai_tokens(self) -> AsyncIterator[str]:
        if self._client is None:
            is_aiohttp = self._client_name == "openai-aiohttp"
            http = openai.DefaultAioHttpClient() if is_aiohttp else openai.DefaultAsyncHttpxClient()
            self._client = openai.AsyncOpenAI(base_url=self._endpoint, api_key="none", http_client=http)
        chunks = await self._client.chat.completions.create(model="fake", messages=cast(Any, _MESSAGES), stream=True)
        async for chunk in chunks:
            yield chunk.choices[0].delta.content or ""


def main() -> None:
    """Serve on 127.0.0.1 until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--client", choices=("aiohttp", "openai", "openai-aiohttp"), default="aiohttp")
    options = parser.parse_args()
    uvicorn.run(
        Relay(options.endpoint, options.client), host="127.0.0.1", port=options.port, loop="uvloop", http="httptools",
        ws="websockets-sansio", ws_max_size=64 * 1024, ws_ping_interval=20, ws_ping_timeout=20,
        ws_per_message_deflate=False, lifespan="off", access_log=False, log_level="warning", server_header=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()

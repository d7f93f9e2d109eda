"""A minimal ASGI application that sends frames, with the web process's uvicorn settings.

    python -m benchmarks.relay --port N

A socket sends {"bytes": size, "interval": seconds} and receives frames of that size until it closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import uvicorn


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send until the client disconnects."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    wanted = json.loads((await receive())["text"])
    sending = asyncio.ensure_future(_send_by_the_clock(send, "x" * wanted["bytes"], wanted["interval"]))
    while (await receive())["type"] != "websocket.disconnect":
        pass
    sending.cancel()


async def _send_by_the_clock(send: Any, frame: str, interval: float) -> None:
    clock = asyncio.get_running_loop().time
    started, number = clock(), 0
    while True:
        number += 1
        await asyncio.sleep(max(started + number * interval - clock(), 0))
        await send({"type": "websocket.send", "text": frame})


def main() -> None:
    """Serve on 127.0.0.1 until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(
        application, host="127.0.0.1", port=parser.parse_args().port, loop="uvloop", http="httptools",
        ws="websockets-sansio", ws_max_size=64 * 1024, ws_ping_interval=20, ws_ping_timeout=20,
        ws_per_message_deflate=False, lifespan="off", access_log=False, log_level="warning", server_header=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()

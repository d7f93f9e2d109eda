"""A real HTTP server that receives webhooks, records every request and answers as the test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Delivery:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)["data"]["events"]
        return found


@dataclass
class Receiver:
    """The test's interface to the server. `answers`: statuses of the next requests; then `status`."""

    origin: str
    status: int = 200
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.origin.removeprefix("http://")

    def received(self, path: str = "/hook") -> list[str]:
        """Return the ids of all objects whose events were received, in their order."""
        return [event["object_id"] for one in self.deliveries if one.path == path for event in one.events]


@contextmanager
def running() -> Iterator[Receiver]:
    """Run the server on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.deliveries.append(Delivery(self.path, headers, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else receiver.status)
            for name, value in ({"Content-Length": "0"} | receiver.headers).items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server.RequestHandlerClass = Handler
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield receiver
    server.shutdown()
    server.server_close()

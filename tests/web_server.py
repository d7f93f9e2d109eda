"""Real HTTP servers of the web: pages as a test writes them, also hostile ones, and the JSON of a SearXNG.

Each server records the requests that it received.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Page:
    """What a path answers with; `delay` in seconds, before each of the parts of its body."""

    body: str | bytes = ""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    location: str = ""
    delay: float = 0
    parts: int = 1


@dataclass
class Site:
    """A test's interface to a server: its pages by path, and the paths, connections and agents of all requests."""

    host: str
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)

    def url(self, path: str = "") -> str:
        return f"http://{self.host}{path}"

    def html(self, path: str, *paragraphs: str) -> str:
        """Add a page with these paragraphs and return its address."""
        text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        self.pages[path] = Page(f"<html><head><title>A page</title></head><body>{text}</body></html>")
        return self.url(path)

    def answer(self, request: BaseHTTPRequestHandler) -> Page:
        path = urlsplit(request.path).path
        return self.pages.get(path, Page("nothing here", status=404))


@dataclass
class SearXNG(Site):
    """A SearXNG: `results` for every query, and the queries that it received."""

    results: list[dict[str, Any]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    status: int = 200
    delay: float = 0

    def answer(self, request: BaseHTTPRequestHandler) -> Page:
        asked = urlsplit(request.path)
        parameters = parse_qs(asked.query)
        if asked.path != "/search" or parameters.get("format") != ["json"]:
            return Page("no JSON", status=404)
        self.queries += parameters["q"]
        if self.status != 200:
            return Page("<html>refused</html>", status=self.status, delay=self.delay)
        return Page(
            json.dumps({"query": parameters["q"][0], "results": self.results}),
            content_type="application/json",
            delay=self.delay,
        )

    def find(self, *addresses: str, date: str | None = None) -> None:
        """Let the next searches find these pages."""
        self.results = [
            {
                "title": f"Result {number}",
                "url": address,
                "content": f"Snippet of result {number}.",
                "publishedDate": date,
            }
            for number, address in enumerate(addresses, start=1)
        ]


@contextmanager
def running(kind: type[Site] = Site) -> Iterator[Any]:
    """Run a server on a free port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    site = kind(f"127.0.0.1:{server.server_address[1]}")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # which keeps connections

        def do_GET(self) -> None:
            site.requests.append(self.path)
            site.connections.append(self.client_address[1])
            site.agents.add(self.headers.get("User-Agent", ""))
            page = site.answer(self)
            body = page.body.encode() if isinstance(page.body, str) else page.body
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(body) * page.parts))
            if page.location:
                self.send_header("Location", page.location)
            self.end_headers()
            for _part in range(page.parts):
                time.sleep(page.delay)
                try:
                    self.wfile.write(body)
                except OSError:
                    return

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server.RequestHandlerClass = Handler
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield site
    server.shutdown()
    server.server_close()

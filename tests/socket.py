"""A page's socket without a browser: sends sync requests and receives frames."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.server import Client


@dataclass
class PageSocket:
    """An open socket and all frames that it received."""

    connection: ClientConnection
    received: list[str] = field(default_factory=list)

    def hello(self) -> None:
        self.connection.send(json.dumps({"have": {}}))

    def until(self, pattern: str, seconds: float = 30.0) -> str:
        """Receive until a frame matches `pattern`, and return that frame."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            try:
                frame = str(self.connection.recv(timeout=remaining))
            except TimeoutError:
                break
            self.received.append(frame)
            if re.search(pattern, frame):
                return frame
        raise AssertionError(f"no frame with {pattern} in {seconds} s; received {[f[:200] for f in self.received]}")

    def until_all(self, *patterns: str) -> None:
        """Receive until each of `patterns` has matched a frame, in any order."""
        missing = set(patterns)
        while missing:
            frame = self.until("|".join(sorted(missing)))
            missing = {pattern for pattern in missing if not re.search(pattern, frame)}

    def close_code(self, seconds: float = 30.0) -> int:
        """Receive until the server closes the socket, and return the close code."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            try:
                self.received.append(str(self.connection.recv(timeout=remaining)))
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else 1006
            except TimeoutError:
                break
        raise AssertionError(f"still open after {seconds} s")


@contextmanager
def open_socket(
    person: Client, thread: str | None, *, url: str | None = None, origin: str | None = "own"
) -> Iterator[PageSocket]:
    """Open the socket of a thread, or of a page without a thread, with this person's cookies."""
    base = url or person.url
    cookies = "; ".join(f"{name}={value}" for name, value in person.http.cookies.items())
    with connect(
        base.replace("http", "ws") + (f"/ws/t/{thread}" if thread else "/ws"),
        additional_headers={"Cookie": cookies},
        origin=base if origin == "own" else origin,  # type: ignore[arg-type]
        proxy=None,
    ) as connection:
        yield PageSocket(connection)

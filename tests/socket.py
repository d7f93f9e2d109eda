"""A page's socket without a page: says what it has, and hears frames."""

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
class Listener:
    """An open socket on a thread and everything it heard."""

    connection: ClientConnection
    heard: list[str] = field(default_factory=list)

    def hello(self, have: dict[str, int] | None = None) -> None:
        self.connection.send(json.dumps({"have": have or {}}))

    def until(self, what: str, seconds: float = 30.0) -> str:
        """Listen until a frame matches the pattern `what`, and return that frame."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                frame = str(self.connection.recv(timeout=left))
            except TimeoutError:
                break
            self.heard.append(frame)
            if re.search(what, frame):
                return frame
        raise AssertionError(f"no frame with {what} in {seconds} s; heard {[f[:200] for f in self.heard]}")

    def until_all(self, *patterns: str, seconds: float = 30.0) -> None:
        """Listen until each of `patterns` has matched a frame, in whatever order they come."""
        missing = set(patterns)
        while missing:
            frame = self.until("|".join(sorted(missing)), seconds)
            missing = {pattern for pattern in missing if not re.search(pattern, frame)}

    def closed_with(self, seconds: float = 30.0) -> int:
        """Listen until the other side closes, and return its code."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self.heard.append(str(self.connection.recv(timeout=left)))
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else 1006
            except TimeoutError:
                break
        raise AssertionError(f"still open after {seconds} s")


@contextmanager
def listening(
    person: Client, thread: str | None, *, url: str | None = None, origin: str | None = "own"
) -> Iterator[Listener]:
    """Open the socket of a thread, or of a page without one, with this person's cookies."""
    base = url or person.url
    cookies = "; ".join(f"{name}={value}" for name, value in person.http.cookies.items())
    with connect(
        base.replace("http", "ws") + (f"/ws/t/{thread}" if thread else "/ws"),
        additional_headers={"Cookie": cookies},
        origin=base if origin == "own" else origin,  # type: ignore[arg-type]
        proxy=None,
    ) as connection:
        yield Listener(connection)

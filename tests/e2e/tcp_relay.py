"""The line between a browser and Cato, which can be cut: a relay of bytes on a port of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Line:
    """`url` is Cato as it is reached over this line."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._cato = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: set[socket.socket] = set()
        self._is_cut = False
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks, and no new one comes about."""
        self._is_cut = True
        for end in list(self._ends):
            _hang_up(end)

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        _hang_up(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            if self._is_cut:
                near.close()
                continue
            far = socket.create_connection(self._cato)
            for source, target in ((near, far), (far, near)):
                self._ends.add(source)
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            self._ends.discard(end)
            _hang_up(end)


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    line = Line(url)
    try:
        yield line
    finally:
        line.close()


def _hang_up(end: socket.socket) -> None:
    # Shutting down wakes whoever reads from it; closing alone does not.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()

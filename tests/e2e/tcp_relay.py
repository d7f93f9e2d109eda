"""A relay of bytes between a browser and Cato whose connections can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class TcpRelay:
    """Relay connections at `url` to Cato."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._cato = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: set[socket.socket] = set()
        self._is_cut = False
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections and refuse new ones."""
        self._is_cut = True
        for end in list(self._ends):
            _shut_down(end)

    def restore(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        _shut_down(self._listener)

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
            _shut_down(end)


@contextmanager
def relay_to(url: str) -> Iterator[TcpRelay]:
    relay = TcpRelay(url)
    try:
        yield relay
    finally:
        relay.close()


def _shut_down(end: socket.socket) -> None:
    # Shutting down wakes readers; closing alone does not.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()

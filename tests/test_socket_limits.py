"""Invalid socket requests and frames close the socket with a code and never cause a traceback."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.server import Cato, Client, wait_for
from tests.socket import open_socket

DEEP = "[" * 5000
MALFORMED = [
    DEEP,
    json.dumps({"have": {"7a0e6a54-6f6c-4a8e-9d0a-0f8b54f2b1c1": 1}}).replace("1}", "1e400}"),
    "{}",
    "no JSON",
    "\x00",
]


def close_code(url: str, origin: str | None) -> int:
    with connect(url, origin=origin, proxy=None) as connection:  # type: ignore[arg-type]
        try:
            connection.recv(timeout=10)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006
    raise AssertionError("the socket stayed open")


@pytest.mark.parametrize("path", ["/nothing", "/ws/t/zzz", "/ws/", "/"])
def test_a_socket_at_an_unknown_address_is_closed(cato: Cato, administrator: Client, path: str) -> None:
    assert close_code(cato.url.replace("http", "ws") + path, cato.url) == 4404


@pytest.mark.parametrize("origin", ["http://[::1", "http://", "null", "http://evil.example", "::::"])
@pytest.mark.parametrize("path", ["/ws", "/nothing"])
def test_a_socket_with_a_foreign_or_malformed_origin_is_closed(
    cato: Cato, administrator: Client, origin: str, path: str
) -> None:
    assert close_code(cato.url.replace("http", "ws") + path, origin) == 4403


@pytest.mark.parametrize("frame", MALFORMED)
def test_an_invalid_frame_is_answered_and_repeated_ones_close_the_socket(cato: Cato, alice: Client, frame: str) -> None:
    thread = alice.send_message("Hello")
    with open_socket(alice, thread) as page:
        page.hello()
        page.until("turn-")
        page.connection.send(frame)
        page.until("error")
        page.connection.send(json.dumps({"seen": True}))  # one mistake is tolerated
        for _ in range(4):
            page.connection.send(frame)
        assert page.close_code() == 1008


def test_a_flooding_socket_is_closed_with_the_code_after_which_pages_reconnect(alice: Client) -> None:
    with open_socket(alice, None) as page:
        try:
            for _ in range(500):
                page.connection.send(json.dumps({"seen": True}))
        except ConnectionClosed:
            pass
        assert page.close_code() == 1013


def test_a_person_has_a_limited_number_of_sockets_and_others_are_not_affected(alice: Client, bob: Client) -> None:
    with ExitStack() as stack:
        pages = [stack.enter_context(open_socket(alice, None)) for _ in range(20)]
        for page in pages:
            page.connection.send(json.dumps({"back": True}))
            page.until("threads")  # registered
        with open_socket(alice, None) as one_more:
            assert one_more.close_code() == 4429
        assert is_updated(bob)
        pages[0].connection.close()
        wait_for(lambda: is_updated(alice), "a place to become free", every=0.5)


def is_updated(person: Client) -> bool:
    """Return whether another page of this person receives its thread list."""
    with open_socket(person, None) as page:
        page.connection.send(json.dumps({"back": True}))
        try:
            return bool(page.until("threads"))
        except (ConnectionClosed, AssertionError):
            return False


def test_nothing_here_logs_a_traceback(cato: Cato, alice: Client) -> None:
    with open_socket(alice, None) as page:
        page.connection.send(DEEP)
        page.until("error")
    close_code(cato.url.replace("http", "ws") + "/ws", "http://[::1")
    close_code(cato.url.replace("http", "ws") + "/nothing", cato.url)
    with open_socket(alice, None) as page:
        page.connection.send(json.dumps({"back": True}))  # the page closes before its list is rendered

    for mistake in ("RecursionError", "OverflowError", "No route found", "ClientDisconnected", "never retrieved"):
        assert mistake not in cato.logs()

"""`serve` with several web processes: they share its address, pages and answers, and replace each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.fake_endpoint import FakeEndpoint
from tests.server import Cato, Client, running, wait_for
from tests.socket import PageSocket, open_socket

_MAX_SOCKETS = 16  # all in one of two processes: 1 in 30,000


@pytest.fixture(scope="module")
def cato(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeEndpoint) -> Iterator[Cato]:
    endpoint.script("shared", answer="All right, noted.")
    environment = {"OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": "shared", "CATO_SERVER_WEB_PROCESSES": "2"}
    with running(tmp_path_factory.mktemp("shared"), **environment) as cato:
        wait_for(lambda: len(_listening(cato)) == 2, "both web processes to listen")
        yield cato


@pytest.fixture(scope="module")
def ada(cato: Cato) -> Client:
    return cato.set_up()


def test_a_page_receives_answers_of_each_web_process(cato, ada):
    thread = ada.send_message("The gasket is number 5.")
    with ExitStack() as stack:
        sockets = _sockets_of_both(cato, ada, thread, stack)
        for page in sockets:
            page.until("All right, noted.")

        ada.send_message("The pump is number 7.", thread)

        for page in sockets:
            page.until("The pump is number 7.")
            page.until("All right, noted.")


def test_each_web_process_returns_the_sums_of_all(cato, ada):
    with ExitStack() as stack:
        thread = ada.send_message("The valve is number 9.")
        sockets = _sockets_of_both(cato, ada, thread, stack)
        sockets[0].until("All right, noted.")

        metrics = f"{cato.url}/metrics"
        wait_for(lambda: _figure(httpx.get(metrics).text, "cato_pages") == len(sockets), "earlier pages to be closed")
        # New connections, which reach both processes.
        pages = [httpx.get(metrics).text for _ in range(_MAX_SOCKETS)]

        assert {_figure(page, "cato_pages") for page in pages} == {len(sockets)}
        # A recall is counted before the answer begins.
        assert len({_figure(page, "cato_recall_seconds_count") for page in pages}) == 1

        ended = _listening(cato)[0]
        lost = _pages_by_process(cato, sockets)[ended.pid]
        ended.kill()
        ended.wait(10)

        assert _figure(httpx.get(metrics).text, "cato_pages") == len(sockets) - lost
    wait_for(lambda: len(_listening(cato)) == 2, "it to listen again")


def test_while_one_web_process_is_down_the_other_serves_and_it_comes_back(cato):
    first, second = _listening(cato)
    second.kill()
    second.wait(10)

    assert [httpx.get(f"{cato.url}/healthz").status_code for _ in range(8)] == [200] * 8
    wait_for(lambda: len(_listening(cato)) == 2, "it to listen again")
    assert first in _listening(cato)
    assert "web 2 ended (signal 9)" in cato.logs() or "web ended (signal 9)" in cato.logs()


def _sockets_of_both(cato: Cato, person: Client, thread: str, stack: ExitStack) -> Sequence[PageSocket]:
    """Open pages of a thread until both web processes have one."""
    sockets: list[PageSocket] = []
    while len(_pages_by_process(cato, sockets)) < 2 and len(sockets) < _MAX_SOCKETS:
        sockets.append(stack.enter_context(open_socket(person, thread)))
        sockets[-1].hello()
    assert len(_pages_by_process(cato, sockets)) == 2
    return sockets


def _figure(page: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
    assert found is not None, f"no {name}"
    return float(found[1])


def _listening(cato: Cato) -> list[psutil.Process]:
    """Return the web processes that listen."""
    children = psutil.Process(cato.processes[0].popen.pid).children()
    port = int(cato.url.rpartition(":")[2])
    return [c for c in children if any(s.laddr.port == port and s.status == "LISTEN" for s in c.net_connections("tcp"))]


def _pages_by_process(cato: Cato, sockets: Sequence[PageSocket]) -> Counter[int]:
    """Return the number of these pages by web process."""
    own = {page.connection.local_address[1] for page in sockets}
    return Counter(
        web.pid
        for web in _listening(cato)
        for s in web.net_connections("tcp")
        if s.status == "ESTABLISHED" and s.raddr.port in own
    )

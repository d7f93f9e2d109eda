"""`serve` with several web processes: they share its address, pages and answers, and replace each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.fake_endpoint import FakeEndpoint
from tests.server import Cato, running, wait_for
from tests.socket import open_socket

_MAX_SOCKETS = 16  # all in one of two processes: 1 in 30,000


@pytest.fixture(scope="module")
def cato(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeEndpoint) -> Iterator[Cato]:
    endpoint.script("shared", answer="All right, noted.")
    environment = {"OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": "shared", "CATO_SERVER_WEB_PROCESSES": "2"}
    with running(tmp_path_factory.mktemp("shared"), **environment) as cato:
        wait_for(lambda: len(_listening(cato)) == 2, "both web processes to listen")
        yield cato


def test_a_page_receives_answers_of_each_web_process(cato):
    ada = cato.set_up()
    thread = ada.send_message("The gasket is number 5.")
    with ExitStack() as stack:
        sockets = []
        while len(_connected(cato)) < 2 and len(sockets) < _MAX_SOCKETS:
            sockets.append(stack.enter_context(open_socket(ada, thread)))
            sockets[-1].hello()
            sockets[-1].until("All right, noted.")
        assert len(_connected(cato)) == 2

        ada.send_message("The pump is number 7.", thread)

        for page in sockets:
            page.until("The pump is number 7.")
            page.until("All right, noted.")


def test_while_one_web_process_is_down_the_other_serves_and_it_comes_back(cato):
    first, second = _listening(cato)
    second.kill()
    second.wait(10)

    assert [httpx.get(f"{cato.url}/healthz").status_code for _ in range(8)] == [200] * 8
    wait_for(lambda: len(_listening(cato)) == 2, "it to listen again")
    assert first in _listening(cato)
    assert "web 2 ended (signal 9)" in cato.logs() or "web ended (signal 9)" in cato.logs()


def _listening(cato: Cato) -> list[psutil.Process]:
    """Return the web processes that listen."""
    children = psutil.Process(cato.processes[0].popen.pid).children()
    port = int(cato.url.rpartition(":")[2])
    return [c for c in children if any(s.laddr.port == port and s.status == "LISTEN" for s in c.net_connections("tcp"))]


def _connected(cato: Cato) -> Counter[int]:
    """Return the number of connections from this process by web process."""
    own = {s.laddr.port for s in psutil.Process().net_connections("tcp") if s.status == "ESTABLISHED"}
    return Counter(
        web.pid
        for web in _listening(cato)
        for s in web.net_connections("tcp")
        if s.status == "ESTABLISHED" and s.raddr.port in own
    )

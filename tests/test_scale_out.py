"""Cato as docker-compose.yml deploys it: a proxy, two web processes and two workers.

Only on the services topology; PostgreSQL and Redis are started separately, since they are restarted under load.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.deployment import certificate, postgres, proxy, redis
from tests.server import Cato, Client, Process, running, start, wait_for
from tests.socket import open_socket
from tests.topology import TOPOLOGY, clean_environment, free_port, is_open

_MESSAGES = "SELECT message FROM chat_turn WHERE message LIKE ?"

pytestmark = pytest.mark.skipif(TOPOLOGY != "services", reason="needs the services topology")


@dataclass
class Deployed:
    """A Cato behind its proxy, with its servers."""

    cato: Cato
    url: str
    postgres: Callable[[str], None]
    redis_port: int
    home: Path
    servers: dict[str, Process] = field(default_factory=dict)

    def at_the_proxy(self, person: Client) -> Client:
        """Return the same person at the proxy's address."""
        return self.cato.sign_in(person, self.url)

    def figure(self, name: str) -> list[float]:
        """Return a metric of each web process."""
        pages = [httpx.get(f"{url}/metrics", timeout=30).text for url in self.cato.urls]
        return [float(m[1]) for page in pages if (m := re.search(rf"^{name} (\S+)$", page, re.M))]

    def restart_redis(self) -> None:
        self.servers["redis"].end()
        self.servers["redis"] = redis(self.home, self.redis_port)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, endpoint: Any) -> Iterator[Deployed]:
    home, redis_port, port = tmp_path_factory.mktemp("deployed"), free_port(), free_port()
    first = redis(home, redis_port)
    with postgres() as (database, control):
        endpoint.script("deployed", answer="All right, noted.", token_delay=0.01)
        with running(
            home,
            DATABASE_URL=database,
            REDIS_URL=f"redis://127.0.0.1:{redis_port}/0",
            OPENAI_BASE_URL=endpoint.openai_url,
            OPENAI_API_KEY="deployed",
            CATO_PUBLIC_URL=f"http://127.0.0.1:{port}",
            CATO_CHAT_MESSAGES_PER_MINUTE="100000",
            CATO_CHAT_CONCURRENT_ANSWERS="100000",
        ) as cato:
            instance = Deployed(cato, f"http://127.0.0.1:{port}", control, redis_port, home, {"redis": first})
            front = start(home, "proxy", proxy(home, cato.urls, port), clean_environment())
            wait_for(lambda: httpx.get(f"{instance.url}/readyz").json()["state"] == "ok", "the proxy")
            yield instance
            front.end()
    instance.servers["redis"].end()


@pytest.fixture(scope="module")
def ada(deployed: Deployed) -> Client:
    return deployed.at_the_proxy(deployed.cato.set_up("Ada Admin"))


@pytest.mark.parametrize("name", ["http", "tls"])
def test_the_proxys_configuration_is_valid(tmp_path, name):
    certificate(tmp_path / "proxy" / "tls")
    command = proxy(tmp_path, ["http://127.0.0.1:1", "http://127.0.0.1:2"], free_port(), name)
    result = subprocess.run([*command[:-1], "pid t.pid;", "-t"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_proxy_tries_servers_that_have_just_failed(tmp_path):
    ports, front_port = [free_port(), free_port()], free_port()
    front = start(tmp_path, "proxy", proxy(tmp_path, [f"http://127.0.0.1:{port}" for port in ports], front_port), {})
    wait_for(lambda: is_open(front_port), "the proxy")

    def status() -> int:
        return httpx.get(f"http://127.0.0.1:{front_port}/healthz").status_code

    try:
        assert [status() for _ in range(6)] == [502] * 6, "no server runs, so both are marked as failed"
        with socket.create_server(("127.0.0.1", ports[0])) as server, ThreadPoolExecutor(1) as pool:
            server.settimeout(10)
            request = pool.submit(status)
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            assert request.result() == 200
    finally:
        front.end()


def test_the_proxy_hides_metrics_and_forwards_the_client_address(deployed, ada):
    assert httpx.get(f"{deployed.url}/metrics").status_code == 403
    assert httpx.get(f"{deployed.cato.url}/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403
    response = ada.get("/stats", headers={"X-Request-ID": "seen-by-the-proxy"})
    assert response.headers["X-Request-ID"] == "seen-by-the-proxy"


def test_sockets_work_through_the_proxy(deployed, ada, endpoint):
    thread = ada.send_message("Is anybody there?")
    with open_socket(ada, thread) as listener:
        listener.hello()
        listener.until("All right, noted")


def test_a_rolling_restart_fails_no_request(deployed, ada):
    messages: dict[str, str] = {}
    failures: list[str] = []
    over = threading.Event()

    def keep_asking(person: Client) -> None:
        while not over.is_set():
            key = str(uuid.uuid4())
            answer = person.post("/", {"message": f"Rolling on {key}", "client_key": key})
            _note(answer, 302, failures)
            messages[key] = answer.headers.get("location", "")
            _note(person.get(messages[key] or "/"), 200, failures)

    people = [_again(ada) for _ in range(4)]
    with ThreadPoolExecutor(len(people)) as pool:
        requests = [pool.submit(keep_asking, person) for person in people]
        for name, url in zip(("web1", "web2"), deployed.cato.urls, strict=True):
            deployed.cato.restart(name)
            wait_for(lambda url=url: httpx.get(f"{url}/healthz").is_success, f"{name} to be back", seconds=40)
            time.sleep(3)  # the proxy avoids an unavailable server for a while
        over.set()
        for one in requests:
            one.result()
    assert failures == [], (deployed.home / "nginx-errors.log").read_text()[:2000]
    assert len(messages) > 10
    stored = [row[0] for row in deployed.cato.sql(_MESSAGES, "Rolling on %")]
    assert sorted(stored) == sorted(f"Rolling on {key}" for key in messages), "each message became one turn"


def test_two_hundred_answers_are_balanced_and_hold_no_connection(deployed, ada, endpoint):
    endpoint.script("deployed", answer="word " * 40, token_delay=0.4)
    people = [_again(ada) for _ in range(8)]
    wait_for(
        lambda: not _count_by_state(deployed, "%").keys() & {"queued", "recalling", "answering"},
        "earlier answers to end",
    )
    recalls_before = deployed.figure("cato_recall_seconds_count")

    def begin(first: int) -> None:
        for n in range(first, 200, 8):
            people[first].send_message(f"Stream {n}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(8)))
    with psycopg.connect(deployed.cato.database, autocommit=True) as pg:
        busiest = max(_connections(pg) for _ in range(10) if time.sleep(0.1) is None)
    assert busiest <= 40, f"{busiest} connections for {sum(deployed.figure('cato_streams')):.0f} streams"
    wait_for(
        lambda: _count_by_state(deployed, "Stream %") == {"complete": 200}, "all of them to end", seconds=90, every=0.5
    )
    shares = [
        now - then for now, then in zip(deployed.figure("cato_recall_seconds_count"), recalls_before, strict=True)
    ]
    assert sum(shares) == 200
    assert min(shares) >= 70, f"a fair split: {shares}"
    endpoint.script("deployed", answer="All right, noted.", token_delay=0.01)


def test_restarting_redis_and_postgresql_under_load_loses_nothing_acknowledged(deployed, ada):
    acknowledged: list[str] = []
    over = threading.Event()

    def keep_saying(person: Client) -> None:
        while not over.is_set():
            key = str(uuid.uuid4())
            try:
                answer = person.post("/", {"message": f"Through it all {key}", "client_key": key})
            except httpx.TransportError:
                continue
            if answer.status_code == 302 and "/t/" in answer.headers["location"]:
                acknowledged.append(f"Through it all {key}")
            else:
                time.sleep(0.1)

    people = [_again(ada) for _ in range(3)]
    with ThreadPoolExecutor(len(people)) as pool:
        saying = [pool.submit(keep_saying, person) for person in people]
        time.sleep(1)
        deployed.restart_redis()
        time.sleep(2)
        deployed.postgres("restart")
        before = len(acknowledged)
        wait_for(lambda: len(acknowledged) > before + 10, "messages to be taken again", seconds=40)
        over.set()
        for one in saying:
            one.result()
    stored = {row[0] for row in deployed.cato.sql(_MESSAGES, "Through it all %")}
    assert set(acknowledged) <= stored
    wait_for(
        lambda: not {"queued", "recalling", "answering"} & set(_count_by_state(deployed, "Through it all %")),
        "every answer to have ended one way or another", seconds=120, every=0.5,
    )  # fmt: skip
    complete = _count_by_state(deployed, "Through it all %")["complete"]
    assert complete > 10
    remembered = """SELECT count(*) FROM memory_exchange e JOIN memory_embeddingjob m ON m.exchange_id = e.id
        WHERE e.user_message LIKE ? AND e.assistant_message <> '' AND m.state = 'done'"""
    wait_for(
        lambda: deployed.cato.sql(remembered, "Through it all %")[0][0] >= complete,
        "all of it to be in the index",
        seconds=90,
        every=0.5,
    )
    assert httpx.get(f"{deployed.url}/readyz").json()["state"] == "ok"


def _again(person: Client) -> Client:
    """Return another session of the same browser."""
    window = httpx.Client(base_url=person.url, timeout=30, cookies=httpx.Cookies(person.http.cookies))
    return Client(person.url, person.name, person.email, window)


def _note(answer: httpx.Response, status: int, failures: list[str]) -> None:
    if answer.status_code != status:
        failures.append(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:200]}")


def _count_by_state(deployed: Deployed, like: str) -> dict[str, int]:
    query = "SELECT state, count(*) FROM chat_turn WHERE message LIKE ? GROUP BY state"
    return {str(state): int(count) for state, count in deployed.cato.sql(query, like)}


def _connections(pg: psycopg.Connection[Any]) -> int:
    row = pg.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])

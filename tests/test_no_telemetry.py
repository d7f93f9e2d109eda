"""Nothing is sent anywhere but where the configuration points: the connections of all processes are watched."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.files import pdf
from tests.server import Client, running, wait_for
from tests.topology import TOPOLOGY

pytestmark = pytest.mark.skipif(TOPOLOGY != "embedded", reason="watches what `serve` starts")


@pytest.fixture
def watching(tmp_path: Path) -> tuple[list[str], Path]:
    """The command that watches, and where it writes."""
    if shutil.which("strace") is None and os.environ.get("CI") != "true":
        pytest.skip("strace is not installed")
    seen = tmp_path / "seen"
    # Some packages report only where they do not believe to be tested.
    names = (
        "CI",
        "GITHUB_ACTIONS",
        "GITLAB_CI",
        "TF_BUILD",
        "TRAVIS",
        "BUILDKITE",
        "JENKINS_URL",
        "PYTEST_CURRENT_TEST",
    )
    as_at_home = ["env", *(word for name in names for word in ("-u", name))]
    quietly = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "0", "-e", "signal=none"]
    return [*as_at_home, *quietly, "-e", "trace=connect,sendto", "-o", str(seen)], seen


def test_on_the_whole_path_only_the_configured_endpoint_and_its_own_servers_are_spoken_to(tmp_path, endpoint, watching):
    command, seen = watching
    endpoint.script("watched", answer="The ferry leaves at nine.")
    with running(
        tmp_path / "cato",
        watched_by=command,
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="watched",
        CATO_CHAT_TITLES="true",
        ANONYMIZED_TELEMETRY="",
    ) as cato:
        ada = cato.set_up()
        _whole_path(ada)
        served = json.loads((tmp_path / "cato" / "data" / "serve.json").read_text())
        # It does not hand on the signal that asks for an end, so what it watches is told itself.
        os.kill(served["pid"], signal.SIGTERM)
        wait_for(lambda: cato.processes[0].popen.poll() is not None, "it to end")

    ours = {urlsplit(url).port for url in (cato.url, served["chroma_url"])}
    theirs = urlsplit(endpoint.openai_url).port
    spoken_to = _addresses(seen)
    assert ("127.0.0.1", theirs) in spoken_to, "the model was asked, and the watching sees it"
    assert {port for _, port in spoken_to} & ours, "and the vector store"
    assert {host for host, _ in spoken_to} == {"127.0.0.1"}
    assert {port for _, port in spoken_to} <= {*ours, theirs}


def _whole_path(ada: Client) -> None:
    """Chat, a document, a search, forgetting, taking out."""
    thread = ada.send_message("When does the ferry leave?")
    wait_for(lambda: "Remembered</span>" in ada.thread_page(thread), "it to be remembered", seconds=60)
    again = ada.send_message("And the ferry of tomorrow, when does that one leave?")
    wait_for(lambda: "Remembered</span>" in ada.thread_page(again), "that one too", seconds=60)
    files = {"files": ("tides.pdf", pdf(["High water at Halden is at noon."]), "application/pdf")}
    ada.post("/documents", files=files)
    wait_for(
        lambda: "high water" in ada.get("/search", params={"q": "when is high water"}).text.lower(), "the document", 60
    )
    exchange = re.search(r"/m/([0-9a-f-]{36})", ada.get("/search", params={"q": "ferry"}).text)
    assert exchange
    assert ada.post(f"/m/{exchange[1]}/forget", {"confirmed": "yes"}).status_code == 302
    assert ada.post("/settings/export").status_code == 200
    for page in ("/stats", "/documents", "/settings", "/admin/people", "/admin/operations"):
        assert ada.get(page).status_code == 200


def _addresses(seen: Path) -> set[tuple[str, int]]:
    """Hosts and ports that anything was sent to, by TCP or UDP; sockets in the file system are no address."""
    found = set()
    for line in seen.read_text(errors="replace").splitlines():
        if "AF_INET" not in line:
            continue
        host = re.search(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', line)
        port = re.search(r"sin6?_port=htons\((\d+)\)", line)
        assert host, line
        assert port, line
        found.add((host[1] or host[2], int(port[1])))
    return found

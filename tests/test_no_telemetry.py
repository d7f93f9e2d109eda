"""Cato connects only to configured hosts; all connections of all processes are observed."""

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
def observer(tmp_path: Path) -> tuple[list[str], Path]:
    """Return the command that observes connections, and its output file."""
    if shutil.which("strace") is None and os.environ.get("CI") != "true":
        pytest.skip("strace is not installed")
    trace = tmp_path / "seen"
    # Some packages send telemetry only if they detect no test environment.
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
    production_environment = ["env", *(word for name in names for word in ("-u", name))]
    quietly = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "0", "-e", "signal=none"]
    return [*production_environment, *quietly, "-e", "trace=connect,sendto", "-o", str(trace)], trace


def test_only_the_configured_endpoint_and_own_servers_are_contacted(tmp_path, endpoint, observer):
    command, trace = observer
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
        _use_everything(ada)
        note = json.loads((tmp_path / "cato" / "data" / "serve.json").read_text())
        # The observer does not forward SIGTERM, so the supervisor is signalled directly.
        os.kill(note["pid"], signal.SIGTERM)
        wait_for(lambda: cato.processes[0].popen.poll() is not None, "it to end")

    ours = {urlsplit(url).port for url in (cato.url, note["chroma_url"])}
    endpoint_port = urlsplit(endpoint.openai_url).port
    spoken_to = _addresses(trace)
    assert ("127.0.0.1", endpoint_port) in spoken_to, "the model was asked, and the watching sees it"
    assert {port for _, port in spoken_to} & ours, "and the vector store"
    assert {host for host, _ in spoken_to} == {"127.0.0.1"}
    assert {port for _, port in spoken_to} <= {*ours, endpoint_port}


def _use_everything(ada: Client) -> None:
    """Use chat, a document, search, forgetting and deletion."""
    thread = ada.send_message("When does the ferry leave?")
    wait_for(lambda: "Remembered</span>" in ada.thread_page(thread), "it to be remembered", seconds=60)
    second = ada.send_message("And the ferry of tomorrow, when does that one leave?")
    wait_for(lambda: "Remembered</span>" in ada.thread_page(second), "that one too", seconds=60)
    files = {"files": ("tides.pdf", pdf(["High water at Halden is at noon."]), "application/pdf")}
    ada.post("/documents", files=files)
    wait_for(lambda: "high water" in ada.search_page("when is high water").lower(), "the document", 60)
    exchange = re.search(r"/m/([0-9a-f-]{36})", ada.search_page("ferry"))
    assert exchange
    assert ada.post(f"/m/{exchange[1]}/forget", {"confirmed": "yes"}).status_code == 302
    ada.export_everything()
    for page in ("/stats", "/documents", "/settings", "/admin/people", "/admin/operations"):
        assert ada.get(page).status_code == 200


def _addresses(trace: Path) -> set[tuple[str, int]]:
    """Return the hosts and ports of all TCP and UDP connections."""
    found = set()
    for line in trace.read_text(errors="replace").splitlines():
        if "AF_INET" not in line:
            continue
        host = re.search(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', line)
        port = re.search(r"sin6?_port=htons\((\d+)\)", line)
        assert host, line
        assert port, line
        found.add((host[1] or host[2], int(port[1])))
    return found

"""The curl commands of the documents work as they are written, with this server's address, a token and real ids."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import uuid
from pathlib import Path

import httpx
import pytest

from tests import server
from tests.files import pdf

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "docs/api.md", "docs/connect.md")
# Prints the body of an error, too.
CURL = 'curl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@"; }\n'


def documented_commands() -> list[str]:
    """Return the curl commands of all code blocks; a line that ends with a backslash goes on."""
    found = []
    for name in DOCUMENTS:
        text = (ROOT / name).read_text().replace("\\\n", " ")
        found += re.findall(r"^    (curl .*)$", text, re.MULTILINE)
    return found


COMMANDS = documented_commands()


@pytest.fixture
def api(cato: server.Cato, administrator: server.Client, endpoint) -> httpx.Client:
    endpoint.script("cato", answer="Karla has it.")
    return administrator.api_client()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files that the commands upload."""
    (tmp_path / "handbook.pdf").write_bytes(pdf([f"The handbook of {tmp_path}."]))
    at = "2025-03-01T10:00:00Z"
    texts = {"human": "Who has the key?", "assistant": "Karla."}
    messages = [{"uuid": sender, "sender": sender, "text": texts[sender], "created_at": at} for sender in texts]
    conversation = {"uuid": "keys", "name": "Keys", "created_at": at, "chat_messages": messages}
    (tmp_path / "conversations.json").write_text(json.dumps([conversation]))
    return tmp_path


def make(cato: server.Cato, api: httpx.Client, kind: str, folder: Path) -> str:
    """Create an object of this kind; return its id."""
    if kind == "knowledge":
        return make_statement(cato, api)
    if kind == "exchanges":
        response = api.post("/api/exchanges", json={"text": "The key hangs behind the door."})
        return str(response.json()["exchanges"][0]["id"])
    if kind == "documents":
        response = api.post("/api/documents", files={"file": (f"{folder.name}.txt", b"The keys hang behind the door.")})
        return str(response.json()["document"]["id"])
    if kind == "threads":
        return str(api.post("/api/threads", json={"title": "Keys"}).json()["id"])
    if kind == "webhooks":
        return str(api.post("/api/webhooks", json={"address": "https://hooks.example.org/cato"}).json()["id"])
    assert kind == "imports"
    response = api.post("/api/imports", files={"file": (folder / "conversations.json").open("rb")})
    return str(response.json()["id"])


def make_statement(cato: server.Cato, api: httpx.Client) -> str:
    """Turn a stored exchange into a statement that another one supports, since no model extracts one; return its id."""
    ids = [
        uuid.UUID(api.post("/api/exchanges", json={"text": text}).json()["exchanges"][0]["id"]).hex
        for text in (f"A buoy makes at most {uuid.uuid4()} retries.", "Never more retries than that.")
    ]
    with sqlite3.connect(cato.database, timeout=20) as database:
        database.execute("UPDATE memory_exchange SET source = 'knowledge' WHERE id = ?", ids[:1])
        database.execute(
            "INSERT INTO memory_statement (exchange_id, kind, topic, state, state_since, first_said_at, last_said_at, revision) "
            "SELECT id, 'fact', 'Uplink', 'current', timestamp, timestamp, timestamp, 1 FROM memory_exchange WHERE id = ?",
            ids[:1],
        )
        database.execute(
            "INSERT INTO memory_support (statement_id, exchange_id, quote) VALUES (?, ?, 'Never more')", ids
        )
    return str(uuid.UUID(ids[0]))


def has_archive(api: httpx.Client) -> bool:
    """Return whether the archive is ready; request another one if what earlier commands deleted was in it."""
    state = api.get("/api/export").json()["state"]
    if state == "outdated":
        api.post("/api/export")
    return bool(state == "done")


def test_the_documents_have_commands():
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_works(command, cato, api, folder):
    if shutil.which("curl") is None:
        assert os.environ.get("CI") != "true", "curl is not installed"
        pytest.skip("curl is not installed")
    token = api.headers["Authorization"].removeprefix("Bearer ")
    written = re.sub(r"/(\w+)/ID\b", lambda found: f"/{found[1]}/{make(cato, api, found[1], folder)}", command)
    written = written.replace("http://127.0.0.1:8000", cato.url).replace("cato_…", token)
    if "/export" in written:
        api.post("/api/export")
        server.wait_for(lambda: has_archive(api), "the archive", seconds=90)
    if "POSITION" in written:
        written = written.replace("POSITION", str(api.get("/api/events").json()["last"]))
    environment = os.environ | {"CATO": f"{cato.url}/api", "TOKEN": f"Authorization: Bearer {token}"}

    ran = subprocess.run(
        ["bash", "-c", CURL + written], cwd=folder, env=environment, capture_output=True, text=True, timeout=90
    )

    # The import of one conversation can be complete before it is cancelled.
    is_late = command.endswith("/cancel") and "Already finished." in ran.stdout
    assert ran.returncode == 0 or is_late, f"{written}\n{ran.stdout}\n{ran.stderr}"

"""The commands `backup` and `restore`: under load, into an empty installation, and from one database to the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests import server
from tests.backups import members, rows_by_id, rows_of
from tests.server import wait_for
from tests.topology import TOPOLOGY, clean_environment, free_port

RUNS = "Cato is running. Stop its web processes, then restore; a killed process counts for another half minute.\n"
QUERIES = ("Where is the key?", "greenhouse", "what hangs in the kitchen", "zarquon")


@pytest.fixture
def alice(cato, administrator, endpoint) -> server.Client:
    """Sign up a person with a message, a note and a document in the index."""
    endpoint.script("cato", answer="In May, with linseed oil.")
    person = cato.join(administrator, "Alice Owner")
    person.post("/notes", {"text": "The spare key hangs behind the kitchen clock."})
    person.send_message("When is the greenhouse painted?")
    person.post("/documents", files={"files": ("plan.txt", b"The anchor is dropped in seven fathoms.", "text/plain")})
    secret = person.send_message("The combination is zarquon-4711.")
    for words in ("linseed", "kitchen", "fathoms", "zarquon"):
        wait_for(lambda words=words: any(words in hit for hit in hits(person, words)), f"{words} to be found")
    ((exchange_ids,),) = cato.sql("SELECT id FROM memory_exchange WHERE thread_id = ?", uuid.UUID(secret).hex)
    person.post(f"/m/{uuid.UUID(exchange_ids)}/forget")
    return person


@pytest.fixture(params=["sqlite", "postgresql"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return the environment of an empty installation for `serve`, on either database."""
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path / "data"), "CATO_CONFIG_FILE": ""}
    if request.param == "sqlite":
        yield environment
        return
    try:
        database = server._create_database()
    except psycopg.OperationalError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no PostgreSQL answers")
    yield environment | {"DATABASE_URL": database}
    server._drop_database(database)


@contextmanager
def serve(home: Path, environment: dict[str, str]) -> Iterator[server.Cato]:
    cato = server._embedded(home, environment)
    try:
        wait_for(lambda: httpx.get(f"{cato.url}/healthz").is_success, cato.logs(), seconds=60)
        yield cato
    finally:
        cato.processes[0].end()


def manage(environment: dict[str, str], *arguments: str) -> str:
    """Return stdout of the command, or stderr if it fails."""
    result = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=server.ROOT, env=environment, text=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return result.stderr if result.returncode else result.stdout


def hits(person: server.Client, query: str) -> list[str]:
    """Return the search page's hits with their similarity, best first."""
    page = person.search_page(query)
    return re.findall(r'<li class="search-hit">.*?</li>', page, re.DOTALL)


@contextmanager
def talking(person: server.Client) -> Iterator[list[str]]:
    """Let this person start threads while the block runs; yield the ids of those that are acknowledged."""
    thread_ids: list[str] = []
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.is_set():
            thread_ids.append(person.send_message(f"This is sentence number {len(thread_ids)}."))

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        wait_for(lambda: thread_ids, "the first sentence")
        yield thread_ids
    finally:
        is_over.set()
        talker.join()


def test_a_backup_under_load_is_a_consistent_snapshot(cato, alice, tmp_path):
    path = tmp_path / "cato.tar.gz"
    with talking(alice) as thread_ids:
        output = manage(cato.environment, "backup", str(path))

    assert output.startswith("Wrote ")
    assert path.stat().st_mode & 0o777 == 0o600
    data = path.read_bytes()
    threads = {row["id"] for row in rows_of(data, "chat.thread")}
    turns = rows_by_id(data, "chat.turn")
    assert {row["thread_id"] for row in turns.values()} | {thread_ids[0]} <= threads
    assert not set(thread_ids) <= threads
    # A turn and its exchange are written in one transaction, so the backup has both or neither.
    exchange_ids = {row["turn_id"]: row["id"] for row in rows_of(data, "memory.exchange") if row["turn_id"] in turns}
    assert exchange_ids
    assert {turn: turns[turn]["exchange_id"] for turn in exchange_ids} == exchange_ids
    counts = json.loads(members(data)["manifest.json"])["rows"]
    assert {table: len(rows_of(data, table)) for table in counts} == counts


def test_a_restored_installation_answers_the_same_on_either_database(cato, alice, environment, tmp_path):
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    before = {query: hits(alice, query) for query in QUERIES}
    assert all(before[query] for query in QUERIES[:3])
    manage(cato.environment, "backup", str(first))

    assert "exchanges are in the index." in manage(environment, "restore", str(first))

    # The second backup equals the first, except for the revision, since pages were notified of the index.
    assert manage(environment, "backup", str(second)).startswith("Wrote ")
    one, other = first.read_bytes(), second.read_bytes()
    for table in json.loads(members(one)["manifest.json"])["rows"]:
        assert without_revision(one, table) == without_revision(other, table), table
    files = [
        {name: content for name, content in members(data).items() if name.startswith("files/")} for data in (one, other)
    ]
    assert files[0] == files[1] != {}
    with serve(tmp_path, environment) as restored:
        person = restored.sign_in(alice)
        assert {query: hits(person, query) for query in QUERIES} == before
        assert "behind the kitchen clock" in str(before)
        assert "zarquon" not in str(list(before.values()))
        refused = manage(restored.environment, "restore", str(first))
        assert refused == RUNS
        assert {query: hits(person, query) for query in QUERIES} == before


def test_restoring_is_refused_while_web_processes_run(cato, tmp_path):
    """On other hosts they share the database and Redis with the command, but not the data directory."""
    elsewhere = cato.environment | {"CATO_DATA_DIR": str(tmp_path / "another")}
    if TOPOLOGY == "embedded":
        note = json.loads((Path(cato.environment["CATO_DATA_DIR"]) / "serve.json").read_text())
        elsewhere |= {"REDIS_URL": note["redis_url"]}
    path = tmp_path / "backup.tar.gz"
    manage(cato.environment, "backup", str(path))
    assert manage(elsewhere, "restore", "--index-later", str(path)) == RUNS


def test_restoring_is_refused_while_redis_cannot_say_whether_web_processes_run(tmp_path):
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path), "CATO_CONFIG_FILE": ""}
    environment["REDIS_URL"] = f"redis://127.0.0.1:{free_port()}"
    refused = manage(environment, "restore", "--index-later", str(tmp_path / "backup.tar.gz"))
    assert refused == "Redis does not answer, so web processes could be running. Start it, then restore.\n"


def without_revision(data: bytes, table: str) -> dict[object, dict[str, object]]:
    return {
        key: {name: row[name] for name in row if name != "revision"} for key, row in rows_by_id(data, table).items()
    }

"""After `erase` no file of the data directory contains forgotten data, and everything else is still found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from memory.index.purge import vacuum_database
from tests.server import ROOT, SERVE, Cato, running, start, start_chroma, wait_for
from tests.topology import TOPOLOGY, free_port, only_long

FORGOTTEN = {
    "safe": ("The xylophone safe opens with 74-11-93, says Quillfeather.", "I keep xylophonic secrets to myself."),
    "party": ("Surprise party for Wilhelmina Zweigelt on the 14th in the boathouse.", "Nobody hears a word of it."),
}
KEPT = {
    "boiler": ("The boiler was replaced by a heat pump in March.", "Then the gas contract can be cancelled."),
    "bees": ("Two colonies of bees stand behind the orchard now.", "Good for the cherries."),
}
OF_THE_TEAM = ("The ferry leaves at noon on Sundays.", "From the northern pier.")
# The exchange after a forgotten one was embedded with the end of it.
FOLLOWER = ("And who else should know about it?", "Only the two of us.")
DOCUMENT = "Vanderquist pays 5417 euros a month for the quayside warehouse. " * 30
# Extracted from the party, with which it is forgotten.
STATEMENT, TOPIC = "Marzipanfalter bakes the cake for the boathouse.", "Marzipanfalter"
DATA = ("STATEMENT", "TOPIC", "FORGOTTEN", "KEPT", "OF_THE_TEAM", "FOLLOWER", "DOCUMENT")
WORDS = (
    "xylophon",
    "quillfeath",
    "74-11-93",
    "wilhelmina",
    "zweigelt",
    "boathouse",
    "vanderquist",
    "quaysid",
    "marzipanfalt",
)


def in_process(cato: Cato, code: str) -> Any:
    """Run Python code in a Django process of that Cato and return its `out`."""
    script = f"""
import django, json, sys, uuid
django.setup()
from django.utils import timezone
from memory import api
from memory.index import chroma
from memory.spaces import access
from memory.exchanges import receipts
from memory.models import *
from memory.index.vectors import vector_ids
from cato_web.accounts.models import User
out = None
{code}
print("\\n" + json.dumps(out))
"""
    environment = cato.environment | {"DJANGO_SETTINGS_MODULE": "cato_web.settings"}
    note = Path(cato.environment["CATO_DATA_DIR"]) / "serve.json"
    if note.exists():
        remaining = json.loads(note.read_text())
        environment |= {"CHROMA_URL": remaining["chroma_url"], "REDIS_URL": remaining["redis_url"]}
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout.splitlines()[-1])


REMEMBER = """
from cato_web.accounts.services import create_person
person = create_person(name="Ada", email="ada@halden.example", password="four plain words are fine", role="administrator")
space = access.personal_space(person.pk)
def keep(pair, session=None):
    return api.remember(api.NewExchange(space=space, owner_id=person.pk, source="chat", user_message=pair[0],
        assistant_message=pair[1], session_id=session, thread_id=session))
session = uuid.uuid4()
gone = [keep(FORGOTTEN["safe"], session)]
follower = keep(FOLLOWER, session)
gone.append(keep(FORGOTTEN["party"]))
from memory.knowledge.statements import NewStatement, NewSupport, add_statements
support = NewSupport(gone[-1].pk, gone[-1].user_message, gone[-1].version)
added = add_statements(
    space, [NewStatement(text=STATEMENT, kind="plan", topic=TOPIC, supports=[support])], read=[support]
)
stated = [statement.exchange for statement in added]
from django.core.files.base import ContentFile
version = api.upload_document(ContentFile(DOCUMENT.encode()), name="rent.txt", space=space, owner_id=person.pk, source="cli").version
api.read_documents()
gone += [chunk.exchange for chunk in version.chunks.select_related("exchange")]
kept = [keep(pair) for pair in KEPT.values()]
# In the same collection, but in another space.
space = access.team_space()
kept += [keep(OF_THE_TEAM)]
import time
ids = [e.pk for e in [*gone, *stated, follower, *kept]]
while set(api.memory_states(ids).values()) != {"remembered"}:
    api.index_pending()
    time.sleep(.1)
vectors = []
for exchange in [*gone, *stated, follower]:
    row = EmbeddingJob.objects.select_related("collection").get(exchange=exchange)
    ids = vector_ids(row.exchange_id, row.version, row.parts)
    found = chroma.run(row.collection.name, lambda handle: handle.get(ids=ids, include=["embeddings"]))
    import numpy as np
    made = [v for v, id in zip(found["embeddings"], found["ids"]) if exchange != follower or ":whole:" in id]
    cached = CachedEmbedding.objects.get(content_hash=Exchange.objects.get(pk=exchange.pk).content_hash)
    vectors += [np.asarray(v, dtype="<f4").tobytes().hex() for v in made]
    if exchange != follower:
        vectors.append(bytes(cached.vectors)[2:].hex())
out = {"gone": [str(e.pk) for e in gone], "vectors": vectors}
"""


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[tuple[Cato, dict[str, Any]]]:
    with running(tmp_path) as cato:
        data = "".join(f"{name} = {globals()[name]!r}\n" for name in DATA)
        yield cato, in_process(cato, data + REMEMBER)


def forget(cato: Cato, ids: list[str]) -> dict[str, int]:
    """Forget these exchanges and wait for the verified erasure; return the receipt."""
    receipt: dict[str, int] = in_process(
        cato,
        f"""
import dataclasses, time
from datetime import timedelta
ids = [uuid.UUID(id) for id in {ids!r}]
by = User.objects.get().pk
api.forget_documents(Document.objects.values_list("pk", flat=True), by=by)
api.forget(ids, by=by)
while api.cleanup_documents():
    pass
erasing = Exchange.objects.exclude(forgotten_at=None).filter(erased_at=None)
while erasing.exists() or EmbeddingJob.objects.exclude(state="done").exists():
    api.erase_forgotten()
    api.index_pending()
    time.sleep(.2)
out = dataclasses.asdict(receipts.receipt_for(ids))
""",
    )
    return receipt


def traces(folder: Path, vectors: list[str]) -> set[str]:
    """Return which words and vectors are in a file below the folder, as "file: match"."""
    # Chroma scales vectors, so a run of a few numbers identifies one. A file may have parts of a vector only.
    runs = {bytes.fromhex(v)[at : at + 16] for v in vectors for at in range(0, len(v) // 2 - 16, 64)}
    found = set()
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        low = content.lower()
        found |= {f"{path.name}: {word}" for word in WORDS if word.encode() in low}
        if any(run in content for run in runs):
            found.add(f"{path.name}: a vector")
    return found


def is_found(cato: Cato, text: str) -> list[str]:
    return list(
        in_process(
            cato,
            f"out = [hit.exchange.user_message for hit in api.search({text!r}, spaces=frozenset("
            "Space.objects.values_list('id', flat=True)), count=3).results]",
        )
    )


@pytest.mark.skipif(TOPOLOGY == "services", reason="the files of PostgreSQL are not Cato's")
def test_erase_removes_texts_and_vectors_from_all_files_of_a_running_cato(filled):
    cato, secrets = filled
    files = Path(cato.environment["CATO_DATA_DIR"])
    before = traces(files, secrets["vectors"])
    assert before & {"cato.sqlite3: zweigelt", "cato.sqlite3-wal: zweigelt"}
    assert "chroma.sqlite3: a vector" in before

    receipt = forget(cato, secrets["gone"])
    assert any("vector" in trace for trace in traces(files, secrets["vectors"])), "deleting alone is not enough"
    assert receipt["exchanges"] == len(secrets["gone"])
    assert receipt["in_files"] == len(secrets["gone"])

    result = cato.manage("erase")
    assert "were rebuilt" in result.stdout, result.stderr

    assert traces(files, secrets["vectors"]) == set()
    assert "heat pump" in is_found(cato, "what heats the house?")[0]
    assert "bees" in is_found(cato, "insects near the fruit trees")[0]
    assert "ferry" in is_found(cato, "departure of the boat")[0]
    assert in_process(cato, f"out = receipts.receipt_for([uuid.UUID(i) for i in {secrets['gone']!r}]).in_files") == 0
    # New exchanges can still be stored.
    assert in_process(
        cato,
        "e = api.remember(api.NewExchange(space=Space.objects.get(kind='own'), owner_id=User.objects.get().pk, source='chat', "
        "user_message='The gate code is on the fridge.'))\nimport time\n"
        "while api.memory_states([e.pk])[e.pk] != 'remembered': api.index_pending(); time.sleep(.1)\n"
        "out = api.search('gate', spaces=frozenset([e.space_id])).results[0].exchange.user_message",
    ).startswith("The gate")


MOVE = """
import time
from memory.index import placement
shared = Placement.objects.get(space__kind="own").collection
placement.MAX_SHARED_SPACE = 2
placement.rebalance(shared)
while EmbeddingJob.objects.exclude(state="done").exists() or Placement.objects.filter(is_current=False).exists():
    for step in api.SWEEP_STEPS: step()
    time.sleep(.1)
out = Placement.objects.get(space__kind="own").collection.is_shared
"""


@only_long
@pytest.mark.skipif(TOPOLOGY == "services", reason="the files of PostgreSQL are not Cato's")
def test_erase_also_cleans_a_collection_that_the_space_has_left(filled):
    cato, secrets = filled
    files = Path(cato.environment["CATO_DATA_DIR"])
    assert in_process(cato, MOVE) is False
    forget(cato, secrets["gone"])

    assert "2 collections" in cato.manage("erase").stdout

    assert traces(files, secrets["vectors"]) == set()
    assert "ferry" in is_found(cato, "departure of the boat")[0]
    assert "heat pump" in is_found(cato, "what heats the house?")[0]


@only_long
@pytest.mark.skipif(TOPOLOGY == "services", reason="the files of PostgreSQL are not Cato's")
def test_erase_works_while_cato_is_stopped(filled):
    cato, secrets = filled
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, secrets["gone"])
    for process in cato.processes:
        process.end()

    result = cato.manage("erase")

    assert "not run by this Cato" not in result.stdout
    assert traces(files, secrets["vectors"]) == set()
    assert not (files / "vectordb.clean").exists()


@pytest.mark.skipif(TOPOLOGY == "services", reason="`serve` runs no Chroma there")
def test_files_that_cannot_be_purged_are_reported_and_purged_the_next_time(filled):
    cato, secrets = filled
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, secrets["gone"])
    for process in cato.processes:
        process.end()
    stranger = files / "vectordb" / str(uuid.uuid4())
    stranger.symlink_to(files / "elsewhere")  # has a collection's name, but is a link and must not be followed
    (files / "elsewhere").mkdir()

    result = cato.manage("erase", check=False)

    assert result.returncode == 1
    assert "could not be cleaned" in result.stderr
    assert "Run the command again" in result.stderr
    assert "Traceback" not in result.stderr
    stranger.unlink()
    cato.manage("erase")
    assert traces(files, secrets["vectors"]) == set()


def test_with_an_external_chroma_server_erase_does_its_part_and_reports_the_rest(tmp_path):
    port = free_port()
    chroma = start_chroma(tmp_path, "other-chroma", tmp_path / "other", port)
    try:
        with running(tmp_path / "cato", CHROMA_URL=f"http://127.0.0.1:{port}") as cato:
            data = "".join(f"{name} = {globals()[name]!r}\n" for name in DATA)
            secrets = in_process(cato, data + REMEMBER)
            forget(cato, secrets["gone"])

            result = cato.manage("erase").stdout

            assert "is not run by this Cato" in result
            assert "python -m cato_web.supervisor.chroma_cleanup PATH" in result
            assert "heat pump" in is_found(cato, "what heats the house?")[0]
    finally:
        chroma.end()
    assert any("vector" in trace for trace in traces(tmp_path / "other", secrets["vectors"]))

    cleaned = subprocess.run(
        [sys.executable, "-m", "cato_web.supervisor.chroma_cleanup", str(tmp_path / "other")], cwd=ROOT, timeout=60
    )

    assert cleaned.returncode == 0
    assert traces(tmp_path / "other", secrets["vectors"]) == set()


@pytest.mark.skipif(TOPOLOGY == "services", reason="`serve` runs no Chroma there")
def test_a_restarted_supervisor_purges_what_a_killed_one_did_not(filled):
    cato, secrets = filled
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, secrets["gone"])
    in_process(cato, "from memory.index import purge\nimport memory.index.store as s\nreal = s.request_file_cleanup\n"
               "purge.purge_all()")  # fmt: skip
    cato.processes[0].popen.kill()
    cato.processes[0].popen.wait()
    (files / "vectordb.clean").touch()

    cato.processes[0] = start(cato.home, "serve", SERVE, cato.environment)

    wait_for(lambda: not (files / "vectordb.clean").exists(), "the files to be cleaned", seconds=60)
    assert traces(files, secrets["vectors"]) == set()
    assert os.path.isdir(files / "vectordb")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite rewrites its only file")
def test_every_table_of_postgresql_is_written_anew():
    """Texts that were deleted stand in its files until then, also those of quotations, names and turns."""
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}

    def files() -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT relname, relfilenode FROM pg_class WHERE relname = ANY(%s)", [list(tables)])
            return dict(cursor.fetchall())

    before = files()
    vacuum_database()

    assert before.keys() == tables
    assert [table for table, file in files().items() if before[table] == file] == []

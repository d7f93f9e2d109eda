"""After `erase`, no file of the data directory holds a byte of what was forgotten, and the rest is found as before."""

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

from tests.server import ROOT, SERVE, Cato, running, start, start_chroma, wait_for
from tests.topology import TOPOLOGY, free_port

FORGOTTEN = {
    "safe": ("The xylophone safe opens with 74-11-93, says Quillfeather.", "I keep xylophonic secrets to myself."),
    "party": ("Surprise party for Wilhelmina Zweigelt on the 14th in the boathouse.", "Nobody hears a word of it."),
}
KEPT = {
    "boiler": ("The boiler was replaced by a heat pump in March.", "Then the gas contract can be cancelled."),
    "bees": ("Two colonies of bees stand behind the orchard now.", "Good for the cherries."),
}
# What came after something forgotten was embedded with the end of it.
FOLLOWER = ("And who else should know about it?", "Only the two of us.")
DOCUMENT = "Vanderquist pays 5417 euros a month for the quayside warehouse. " * 30
WORDS = ("xylophon", "quillfeath", "74-11-93", "wilhelmina", "zweigelt", "boathouse", "vanderquist", "quaysid")


def in_process(cato: Cato, what: str) -> Any:
    """Run lines of Python inside a Django process of that Cato; `out` is what they hand back."""
    script = f"""
import django, json, sys, uuid
django.setup()
from django.utils import timezone
from memory import api
from memory.index import store
from memory.spaces import access
from memory.exchanges import forgetting
from memory.models import *
from memory.index.vectors import vector_ids
from cato_web.accounts.models import User
out = None
{what}
print("\\n" + json.dumps(out))
"""
    environment = cato.environment | {"DJANGO_SETTINGS_MODULE": "cato_web.settings"}
    note = Path(cato.environment["CATO_DATA_DIR"]) / "serve.json"
    if note.exists():
        left = json.loads(note.read_text())
        environment |= {"CHROMA_URL": left["chroma_url"], "REDIS_URL": left["redis_url"]}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


REMEMBER = """
from cato_web.accounts.services import create_person
person = create_person(name="Ada", email="ada@halden.example", password="four plain words are fine", role="administrator")
space = access.personal_space(person.pk)
def keep(pair, session=None):
    return api.remember(space=space, owner_id=person.pk, source="chat", user_message=pair[0],
        assistant_message=pair[1], session_id=session, thread_id=session)
session = uuid.uuid4()
gone = [keep(FORGOTTEN["safe"], session)]
follower = keep(FOLLOWER, session)
gone.append(keep(FORGOTTEN["party"]))
from django.core.files.base import ContentFile
version = api.upload_document(ContentFile(DOCUMENT.encode()), name="rent.txt", space=space, owner_id=person.pk, source="cli").version
api.read_documents()
gone += [chunk.exchange for chunk in version.chunks.select_related("exchange")]
kept = [keep(pair) for pair in KEPT.values()]
import time
ids = [e.pk for e in [*gone, follower, *kept]]
while set(api.memory_states(ids).values()) != {"remembered"}:
    api.index_pending()
    time.sleep(.1)
vectors = []
for exchange in [*gone, follower]:
    row = EmbeddingJob.objects.select_related("collection").get(exchange=exchange)
    found = store._collection(row.collection.name).get(
        ids=vector_ids(row.exchange_id, row.version, row.parts), include=["embeddings"])
    import numpy as np
    made = [v for v, id in zip(found["embeddings"], found["ids"]) if exchange != follower or ":whole:" in id]
    cached = CachedEmbedding.objects.get(content_hash=Exchange.objects.get(pk=exchange.pk).content_hash)
    vectors += [np.asarray(v, dtype="<f4").tobytes().hex() for v in made]
    if exchange != follower:
        vectors.append(bytes(cached.vectors)[2:].hex())
out = {"gone": [str(e.pk) for e in gone], "vectors": vectors}
"""


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[Cato, dict[str, Any]]]:
    with running(tmp_path) as cato:
        data = f"FORGOTTEN = {FORGOTTEN!r}\nKEPT = {KEPT!r}\nFOLLOWER = {FOLLOWER!r}\nDOCUMENT = {DOCUMENT!r}\n"
        yield cato, in_process(cato, data + REMEMBER)


def forget(cato: Cato, ids: list[str]) -> dict[str, int]:
    """Forget these and wait until it is verified; returns the receipt."""
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
while (receipt := forgetting.receipt_for(ids)).under_way or EmbeddingJob.objects.exclude(state="done").exists():
    api.erase_forgotten()
    api.index_pending()
    time.sleep(.2)
out = dataclasses.asdict(receipt)
""",
    )
    return receipt


def traces(folder: Path, vectors: list[str]) -> set[str]:
    """Which of the words and vectors stand in a file below the folder, as "file: what"."""
    # The index scales what it is given, so a few numbers of a vector in a row stand for it.
    runs = {bytes.fromhex(v)[at : at + 16] for v in vectors for at in range(0, len(v) // 2 - 16, 16)}
    found = set()
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        held = path.read_bytes()
        low = held.lower()
        found |= {f"{path.name}: {word}" for word in WORDS if word.encode() in low}
        if any(run in held for run in runs):
            found.add(f"{path.name}: a vector")
    return found


def finds(cato: Cato, text: str) -> list[str]:
    return list(
        in_process(
            cato,
            f"out = [hit.exchange.user_message for hit in api.search({text!r}, spaces=frozenset("
            "Space.objects.values_list('id', flat=True)), count=3).results]",
        )
    )


@pytest.mark.skipif(TOPOLOGY == "services", reason="the files of PostgreSQL are not Cato's")
def test_after_erase_no_file_of_a_running_cato_holds_text_or_vector_of_what_was_forgotten(told):
    cato, known = told
    files = Path(cato.environment["CATO_DATA_DIR"])
    assert traces(files, known["vectors"]) >= {"cato.sqlite3: zweigelt", "chroma.sqlite3: a vector"}

    receipt = forget(cato, known["gone"])
    assert any("vector" in trace for trace in traces(files, known["vectors"])), "deleting alone is not enough"
    assert receipt["exchanges"] == len(known["gone"])
    assert receipt["in_files"] == len(known["gone"])

    said = cato.manage("erase")
    assert "made anew" in said.stdout, said.stderr

    assert traces(files, known["vectors"]) == set()
    assert "heat pump" in finds(cato, "what heats the house?")[0]
    assert "bees" in finds(cato, "insects near the fruit trees")[0]
    assert in_process(cato, f"out = forgetting.receipt_for([uuid.UUID(i) for i in {known['gone']!r}]).in_files") == 0
    # And what is said afterwards is remembered as ever.
    assert in_process(
        cato,
        "e = api.remember(space=Space.objects.get(kind='own'), owner_id=User.objects.get().pk, source='chat', "
        "user_message='The gate code is on the fridge.')\nimport time\n"
        "while api.memory_states([e.pk])[e.pk] != 'remembered': api.index_pending(); time.sleep(.1)\n"
        "out = api.search('gate', spaces=frozenset([e.space_id])).results[0].exchange.user_message",
    ).startswith("The gate")


@pytest.mark.skipif(TOPOLOGY == "services", reason="the files of PostgreSQL are not Cato's")
def test_erase_does_all_itself_where_cato_does_not_run(told):
    cato, known = told
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, known["gone"])
    for process in cato.processes:
        process.end()

    said = cato.manage("erase")

    assert "not run by this Cato" not in said.stdout
    assert traces(files, known["vectors"]) == set()
    assert not (files / "vectordb.clean").exists()


@pytest.mark.skipif(TOPOLOGY == "services", reason="`serve` runs no Chroma there")
def test_files_that_cannot_be_cleaned_are_said_to_be_so_and_are_cleaned_the_next_time(told):
    cato, known = told
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, known["gone"])
    for process in cato.processes:
        process.end()
    stranger = files / "vectordb" / str(uuid.uuid4())
    stranger.symlink_to(files / "elsewhere")  # named as a folder of vectors, but not to be removed as one
    (files / "elsewhere").mkdir()

    said = cato.manage("erase", check=False)

    assert said.returncode == 1
    assert "could not be cleaned" in said.stderr
    assert "Run the command again" in said.stderr
    assert "Traceback" not in said.stderr
    stranger.unlink()
    cato.manage("erase")
    assert traces(files, known["vectors"]) == set()


def test_with_a_chroma_server_of_somebody_else_erase_does_its_part_and_says_the_rest(tmp_path):
    port = free_port()
    chroma = start_chroma(tmp_path, "other-chroma", tmp_path / "other", port)
    try:
        with running(tmp_path / "cato", CHROMA_URL=f"http://127.0.0.1:{port}") as cato:
            data = f"FORGOTTEN = {FORGOTTEN!r}\nKEPT = {KEPT!r}\nFOLLOWER = {FOLLOWER!r}\nDOCUMENT = {DOCUMENT!r}\n"
            known = in_process(cato, data + REMEMBER)
            forget(cato, known["gone"])

            said = cato.manage("erase").stdout

            assert "is not run by this Cato" in said
            assert "python -m cato_web.supervisor.chroma_cleanup PATH" in said
            assert "heat pump" in finds(cato, "what heats the house?")[0]
    finally:
        chroma.end()
    assert any("vector" in trace for trace in traces(tmp_path / "other", known["vectors"]))

    cleaned = subprocess.run(
        [sys.executable, "-m", "cato_web.supervisor.chroma_cleanup", str(tmp_path / "other")], cwd=ROOT, timeout=60
    )

    assert cleaned.returncode == 0
    assert traces(tmp_path / "other", known["vectors"]) == set()


@pytest.mark.skipif(TOPOLOGY == "services", reason="`serve` runs no Chroma there")
def test_a_supervisor_that_was_killed_cleans_when_it_is_started_again(told):
    cato, known = told
    files = Path(cato.environment["CATO_DATA_DIR"])
    forget(cato, known["gone"])
    in_process(cato, "from memory.index import purge\nimport memory.index.store as s\nreal = s.request_file_cleanup\n"
               "purge.purge_all()")  # fmt: skip
    cato.processes[0].popen.kill()
    cato.processes[0].popen.wait()
    (files / "vectordb.clean").touch()

    cato.processes[0] = start(cato.home, "serve", SERVE, cato.environment)

    wait_for(lambda: not (files / "vectordb.clean").exists(), "the files to be cleaned", seconds=60)
    assert traces(files, known["vectors"]) == set()
    assert os.path.isdir(files / "vectordb")

"""The files of a Chroma server that does not run: what was deleted is removed, what is held is found as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chromadb
import httpx
import numpy as np
import pytest
from chromadb.api import ClientAPI

from cato_web.supervisor.chroma_cleanup import main
from tests.server import start_chroma, wait_for
from tests.topology import free_port

LEFT = b"a dropped vector"
FILES = ("data_level0.bin", "length.bin")
# hnswlib makes the files of an index for so many vectors; beyond them they grow by what is held.
FIRST_ROOM = 100


@contextmanager
def server(home: Path) -> Iterator[ClientAPI]:
    """A Chroma server over the files in `home/vectordb`, while it is asked."""
    port = free_port()
    chroma = start_chroma(home, "chroma", home / "vectordb", port)
    try:
        wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/api/v2/heartbeat").is_success, "Chroma")
        yield chromadb.HttpClient(host="127.0.0.1", port=port)
    finally:
        chroma.end()


def fill(home: Path, count: int, written_at: int) -> np.ndarray:
    """So many vectors in a collection whose files are written when it holds `written_at`; returns the vectors."""
    vectors = np.random.default_rng(3).standard_normal((count, 16), dtype=np.float32)
    hnsw = {"space": "cosine", "sync_threshold": written_at, "batch_size": min(written_at, 100)}
    with server(home) as client:
        made = client.create_collection("kept", configuration={"hnsw": hnsw}, embedding_function=None)
        made.add(ids=[str(at) for at in range(count)], embeddings=vectors)
        made.query(query_embeddings=vectors[:1], n_results=1)
    return vectors


def leave_in_room(home: Path, held: int) -> int:
    """Write into the room beyond the vectors held what may have been in the server's memory; returns how many bytes."""
    left = 0
    for file in (file for name in FILES for file in (home / "vectordb").glob(f"*/{name}")):
        whole = file.read_bytes()
        used = whole[: len(whole) // FIRST_ROOM * held]
        file.write_bytes((used + LEFT * len(whole))[: len(whole)])
        left += len(whole) - len(used)
    return left


def bytes_of(home: Path) -> bytes:
    return b"".join(file.read_bytes() for name in FILES for file in (home / "vectordb").glob(f"*/{name}"))


def nearest(home: Path, vectors: np.ndarray) -> list[str]:
    """The id of the nearest vector to each of these."""
    with server(home) as client:
        found = client.get_collection("kept", embedding_function=None).query(query_embeddings=vectors, n_results=1)
    return [ids[0] for ids in found["ids"]]


@pytest.mark.parametrize(
    ("count", "written_at", "held"),
    [
        pytest.param(20, 1000, 0, id="so few that the index is not written yet"),
        pytest.param(60, 50, 60, id="less than the first room"),
    ],
)
def test_the_room_that_an_index_does_not_use_is_blanked_and_every_vector_found(tmp_path, count, written_at, held):
    vectors = fill(tmp_path, count, written_at)
    left = leave_in_room(tmp_path, held)
    assert left
    assert LEFT in bytes_of(tmp_path)

    assert main([str(tmp_path / "vectordb")]) == 0

    assert LEFT not in bytes_of(tmp_path)
    assert bytes_of(tmp_path).count(0) >= left
    assert nearest(tmp_path, vectors) == [str(at) for at in range(count)]


@pytest.mark.parametrize(("count", "written_at"), [(130, 120), (1200, 1000)])
def test_an_index_that_outgrew_its_first_room_is_cleaned_as_well(tmp_path, count, written_at):
    vectors = fill(tmp_path, count, written_at)

    assert main([str(tmp_path / "vectordb")]) == 0

    assert nearest(tmp_path, vectors) == [str(at) for at in range(count)]


def test_files_of_an_unknown_layout_are_left_alone_and_told(tmp_path, capsys):
    fill(tmp_path, 60, 50)
    lengths = next((tmp_path / "vectordb").glob("*/length.bin"))
    lengths.write_bytes(lengths.read_bytes()[:-2])
    before = bytes_of(tmp_path)

    assert main([str(tmp_path / "vectordb")]) == 1

    assert "has an unknown layout" in capsys.readouterr().err
    assert bytes_of(tmp_path) == before

"""Purging the files of a stopped Chroma server removes deleted data and keeps all results."""

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
# hnswlib allocates an index file for this many vectors and then grows it with its contents.
INITIAL_CAPACITY = 100


@contextmanager
def chroma_server(home: Path) -> Iterator[ClientAPI]:
    """Run a Chroma server over the files in `home/vectordb`."""
    port = free_port()
    chroma = start_chroma(home, "chroma", home / "vectordb", port)
    try:
        wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/api/v2/heartbeat").is_success, "Chroma")
        yield chromadb.HttpClient(host="127.0.0.1", port=port)
    finally:
        chroma.end()


def fill(home: Path, count: int, written_at: int) -> np.ndarray:
    """Create a collection of `count` vectors whose files are written at `written_at` vectors; return the vectors."""
    vectors = np.random.default_rng(3).standard_normal((count, 16), dtype=np.float32)
    hnsw = {"space": "cosine", "sync_threshold": written_at, "batch_size": min(written_at, 100)}
    with chroma_server(home) as client:
        collection = client.create_collection("kept", configuration={"hnsw": hnsw}, embedding_function=None)
        collection.add(ids=[str(at) for at in range(count)], embeddings=vectors)
        collection.query(query_embeddings=vectors[:1], n_results=1)
    return vectors


def write_to_unused_space(home: Path, vector_count: int) -> int:
    """Write data after the last vector, as the server's memory may leave it; return the number of bytes."""
    leftover_size = 0
    for file in (file for name in FILES for file in (home / "vectordb").glob(f"*/{name}")):
        content = file.read_bytes()
        used = content[: len(content) // INITIAL_CAPACITY * vector_count]
        file.write_bytes((used + LEFT * len(content))[: len(content)])
        leftover_size += len(content) - len(used)
    return leftover_size


def all_bytes(home: Path) -> bytes:
    return b"".join(file.read_bytes() for name in FILES for file in (home / "vectordb").glob(f"*/{name}"))


def nearest(home: Path, vectors: np.ndarray) -> list[str]:
    """Return the id of the nearest vector to each of these."""
    with chroma_server(home) as client:
        found = client.get_collection("kept", embedding_function=None).query(query_embeddings=vectors, n_results=1)
    return [ids[0] for ids in found["ids"]]


@pytest.mark.parametrize(
    ("count", "written_at", "vector_count"),
    [
        pytest.param(20, 1000, 0, id="so few that the index is not written yet"),
        pytest.param(60, 50, 60, id="less than the first room"),
    ],
)
def test_unused_space_of_an_index_is_overwritten_and_every_vector_is_found(tmp_path, count, written_at, vector_count):
    vectors = fill(tmp_path, count, written_at)
    leftover_size = write_to_unused_space(tmp_path, vector_count)
    assert leftover_size
    assert LEFT in all_bytes(tmp_path)

    assert main([str(tmp_path / "vectordb")]) == 0

    assert LEFT not in all_bytes(tmp_path)
    assert all_bytes(tmp_path).count(0) >= leftover_size
    assert nearest(tmp_path, vectors) == [str(at) for at in range(count)]


@pytest.mark.parametrize(("count", "written_at"), [(130, 120), (1200, 1000)])
def test_an_index_that_outgrew_its_initial_space_is_purged(tmp_path, count, written_at):
    vectors = fill(tmp_path, count, written_at)

    assert main([str(tmp_path / "vectordb")]) == 0

    assert nearest(tmp_path, vectors) == [str(at) for at in range(count)]


def test_files_of_an_unknown_layout_are_reported_and_not_changed(tmp_path, capsys):
    fill(tmp_path, 60, 50)
    lengths = next((tmp_path / "vectordb").glob("*/length.bin"))
    lengths.write_bytes(lengths.read_bytes()[:-2])
    before = all_bytes(tmp_path)

    assert main([str(tmp_path / "vectordb")]) == 1

    assert "has an unknown layout" in capsys.readouterr().err
    assert all_bytes(tmp_path) == before

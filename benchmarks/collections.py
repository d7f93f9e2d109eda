"""Small spaces in own, shared and partitioned collections, or compared exactly with vectors from SQL.

    taskset -c 1 python -m benchmarks.collections [--spaces 100 1000] [--layouts own 1 64 sql] [--database postgresql://…]

Layouts: `own` (a collection per space), a number of shared collections, `sql` (SQLite) and `postgresql`. Vectors are
clustered and the same in all layouts. Large spaces are left out: they have their own collection in all layouts.
"""

from __future__ import annotations

import argparse
import atexit
import heapq
import itertools
import random
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any, cast

import chromadb
import numpy as np
import psutil
import psycopg
from chromadb.config import Settings
from numpy.typing import NDArray

from benchmarks.bench import workbench
from benchmarks.figures import percentile, table
from tests import server, topology

DIMENSION, TOPICS, NEAREST, BATCH, PAGE, MB = 384, 200, 375, 1000, 150, 1024 * 1024
PARTS, EXCHANGE_ID = 3, 36  # vectors of an exchange, length of its id
READERS = {"5": 5, "50": 50, "the 50 largest": -50}
MOVED, MOVES, LARGEST_REBUILD = 21, 9, 10_000  # vectors of a moved thread, threads, vectors
HNSW: Any = {"hnsw": {"space": "cosine", "max_neighbors": 16, "ef_construction": 200, "ef_search": 400}}
QUERIES = ["spaces", "layout", "by", "read", "vectors", "first, ms", "again, ms", "recall@10"]
COSTS = ["spaces", "vectors", "layout", "move, ms", "collections", "server, MB", "files", "disk, MB", "to rebuild", "s"]
COSTS += ["restart, s", *(f"{readers}, s" for readers in READERS)]
Vectors = NDArray[np.float32]
Ask = Callable[[list[int], Vectors], list[str]]  # spaces and query to ids, nearest first
_topics = np.random.default_rng(1).standard_normal((TOPICS, DIMENSION)).astype(np.float32) / DIMENSION**0.5
_seconds = partial(timeit, number=1)
_threads = ThreadPoolExecutor(max_workers=32)


def around_topics(space: int, size: int, seed: int = 3) -> Any:
    """Return `size` unit vectors around the five topics of the space."""
    topics = np.random.default_rng([4, space]).choice(TOPICS, 5)
    numbers = np.random.default_rng([seed, space])
    noise = numbers.standard_normal((size, DIMENSION)).astype(np.float32) * 0.8 / DIMENSION**0.5
    rows = _topics[numbers.choice(topics, size)] + noise
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Spaces:
    """Spaces of 5 to 30 vectors (84 %) and of 30 to 300 (to 100 from 5,000 spaces on), and readers with queries."""

    def __init__(self, count: int) -> None:
        limits = [(5, 31) if space % 25 < 21 else (30, 101 if count >= 5000 else 301) for space in range(count)]
        self.sizes = [int(np.random.default_rng([2, i]).integers(*limit)) for i, limit in enumerate(limits)]

    def ids(self, spaces: list[int]) -> list[str]:
        """Return ids as long as those of Cato."""
        return [f"{space:032x}-{i // PARTS:03}:part{i % PARTS}:1" for space in spaces for i in range(self.sizes[space])]

    def vectors(self, spaces: list[int]) -> Any:
        return np.concatenate([around_topics(space, self.sizes[space]) for space in spaces])

    def question(self, reader: int, count: int) -> tuple[list[int], Vectors]:
        every = sorted(range(len(self.sizes)), key=self.sizes.__getitem__)
        spaces = random.Random(reader).sample(every, count) if count > 0 else every[count:]
        return spaces, around_topics(spaces[0], 1, seed=reader)[0]

    def move(self, number: int) -> tuple[int, int, list[str]]:  # source, target, ids of a thread
        space = [space for space, size in enumerate(self.sizes) if size >= MOVED][number]
        return space, len(self.sizes) - 1 - space, self.ids([space])[:MOVED]


def nearest_exchanges(vector: Vectors, ids: list[str], rows: Vectors) -> list[str]:
    """Return the ten nearest exchanges by exact comparison."""
    return list(dict.fromkeys(ids[i][:EXCHANGE_ID] for i in np.argsort(-(rows @ vector))))[:10]


class ChromaIndex:
    """A Chroma server with a collection per space, or with shared collections."""

    def __init__(self, layout: str, folder: Path, spaces: Spaces) -> None:
        self.folder, self.port, self.spaces = folder, topology.free_port(), spaces
        self.shared = 0 if layout == "own" else int(layout)
        self.start()
        atexit.register(self.close)  # also if filling is interrupted
        self.groups = self._group(list(range(len(spaces.sizes))))
        self.of = {name: self.client.create_collection(name, configuration=HNSW) for name in self.groups}
        for name, some in self.groups.items():
            ids, rows = spaces.ids(some), spaces.vectors(some)
            fields: Any = [{"space": space} for space in some for _ in range(spaces.sizes[space])]
            for at in range(0, len(ids), BATCH):
                self.of[name].add(ids[at : at + BATCH], rows[at : at + BATCH], fields[at : at + BATCH])

    def start(self) -> None:
        self.process = server.start_chroma(self.folder, "chroma", self.folder / "chroma", self.port)
        server.wait_for(lambda: topology.is_open(self.port), "Chroma", seconds=60, every=0.01)
        self.client = chromadb.HttpClient("127.0.0.1", self.port, settings=Settings(anonymized_telemetry=False))

    def close(self) -> None:
        self.process.end()

    def asks(self) -> dict[str, Ask]:
        where = self._asking(lambda spaces: {"where": {"space": {"$in": spaces}}})
        ids = self._asking(lambda spaces: {"ids": self.spaces.ids(spaces)})
        return {"where": where, "ids": ids} if self.shared else {"query": self._asking(lambda spaces: {})}

    def move(self, source: int, target: int, ids: list[str]) -> None:
        """Copy the vectors with their new filter field, and delete them from the old collection."""
        here, there = (next(iter(self._group([space]))) for space in (source, target))
        rows = self.of[here].get(ids=ids, include=["embeddings"])
        self.of[there].upsert(ids, rows["embeddings"], [{"space": target}] * len(ids))
        if here != there:
            self.of[here].delete(ids=ids)

    def costs(self) -> list[Any]:
        """Measure the server, rebuild the collection of a typical vector, restart the server, and ask."""
        process = psutil.Process(self.process.popen.pid)
        server_mb, files = process.memory_full_info().pss / MB, process.num_fds()
        held = {name: sum(self.spaces.sizes[space] for space in spaces) for name, spaces in self.groups.items()}
        mean = sum(size * size for size in held.values()) / sum(held.values())  # of a random vector's collection
        disk = sum(path.stat().st_size for path in (self.folder / "chroma").rglob("*") if path.is_file())
        name = min(held, key=lambda name: abs(held[name] - mean))
        rebuilt = _seconds(partial(self._rebuild, name)) if held[name] <= LARGEST_REBUILD else "not measured"
        row = [len(held), round(server_mb), files, round(disk / MB), round(mean), rebuilt]
        self.process.end()
        ask, asked = next(iter(self.asks().values())), [self.spaces.question(9000, n) for n in READERS.values()]
        return [*row, _seconds(self.start), *(_seconds(partial(ask, *question)) for question in asked)]

    def _asking(self, limits: Callable[[list[int]], dict[str, Any]]) -> Ask:
        def ask(spaces: list[int], vector: Vectors) -> list[str]:
            groups, vectors = self._group(spaces), cast(Any, [vector])

            def query(name: str) -> list[tuple[float, str]]:
                found = self.of[name].query(vectors, n_results=NEAREST, include=["distances"], **limits(groups[name]))
                return list(zip((found["distances"] or [[]])[0], found["ids"][0], strict=True))

            return [id for _, id in sorted(pair for pairs in _threads.map(query, groups) for pair in pairs)[:NEAREST]]

        return ask

    def _group(self, spaces: list[int]) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = defaultdict(list)
        for space in spaces:
            groups[f"part-{space % self.shared}" if self.shared else f"space-{space}"].append(space)
        return groups

    def _rebuild(self, name: str) -> None:
        copy = self.client.create_collection("copy", configuration=HNSW)
        for at in range(0, self.of[name].count(), BATCH):
            rows = self.of[name].get(limit=BATCH, offset=at, include=["embeddings", "metadatas"])
            copy.add(rows["ids"], rows["embeddings"], rows["metadatas"])
        self.client.delete_collection("copy")


class SqlIndex:
    """A table of exchanges with their space, and one of the vectors of each exchange, filled in random order."""

    def __init__(self, database: str, folder: Path, spaces: Spaces) -> None:
        mark, temporary, blob = ("%s", "TEMPORARY", "BYTEA") if database else ("?", "", "BLOB")
        self.marks: Callable[[int], str] = lambda count: ", ".join([mark] * count)
        self.connection: Any = psycopg.connect(database) if database else sqlite3.connect(folder / "vectors.sqlite3")
        self.sql, self.close = self.connection.cursor(), self.connection.close
        self.asks: Callable[[], dict[str, Ask]] = lambda: {"numpy": self._ask}
        self.sql.execute(f"CREATE {temporary} TABLE exchange (id TEXT PRIMARY KEY, space INTEGER)")
        self.sql.execute(f"CREATE {temporary} TABLE cached (exchange TEXT PRIMARY KEY, vectors {blob})")
        for space in random.Random(6).sample(range(len(spaces.sizes)), len(spaces.sizes)):
            ids, rows = [id[:EXCHANGE_ID] for id in spaces.ids([space])[::PARTS]], spaces.vectors([space])
            vectors = [(id, rows[PARTS * i : PARTS * (i + 1)].tobytes()) for i, id in enumerate(ids)]
            self.sql.executemany(f"INSERT INTO exchange VALUES ({self.marks(2)})", [(id, space) for id in ids])
            self.sql.executemany(f"INSERT INTO cached VALUES ({self.marks(2)})", vectors)
        for statement in ("CREATE INDEX of_space ON exchange (space)", "ANALYZE", "COMMIT"):
            self.sql.execute(statement)

    def move(self, source: int, target: int, ids: list[str]) -> None:
        update, moved = f"UPDATE exchange SET space = {self.marks(1)} WHERE id IN", [id[:EXCHANGE_ID] for id in ids]
        self.sql.execute(f"{update} ({self.marks(len(moved))})", [target, *moved])
        self.connection.commit()

    def costs(self) -> list[Any]:
        return [""] * (len(COSTS) - 4)

    def _ask(self, spaces: list[int], vector: Vectors) -> list[str]:
        join = "SELECT e.id, c.vectors FROM exchange e JOIN cached c ON c.exchange = e.id"
        self.sql.execute(f"{join} WHERE e.space IN ({self.marks(len(spaces))})", spaces)
        best: list[tuple[float, str]] = []
        while page := self.sql.fetchmany(PAGE):
            ids, rows = zip(*page, strict=True)
            similarities = np.frombuffer(b"".join(rows), np.float32).reshape(-1, DIMENSION) @ vector
            starts = np.cumsum([0, *(len(row) // (4 * DIMENSION) for row in rows[:-1])])
            best += zip(np.maximum.reduceat(similarities, starts).tolist(), ids, strict=True)
            best = heapq.nlargest(NEAREST, best)
        return [id for _, id in best]


def measure(ask: Ask, spaces: Spaces, count: int, number: int) -> list[Any]:
    """Ask each question twice; return times and recall. Fails if an unreadable vector is found."""
    passes, shares, sizes = (list[float](), list[float]()), list[float](), list[int]()
    for took, reader in itertools.product(passes, range(8000, 8000 + number)):
        asked, vector = spaces.question(reader, count)
        started = time.perf_counter()
        found = ask(asked, vector)
        took.append(1000 * (time.perf_counter() - started))
        assert {int(id[:32], 16) for id in found} <= set(asked)
        exact = nearest_exchanges(vector, spaces.ids(asked), spaces.vectors(asked))
        nearest = list(dict.fromkeys(id[:EXCHANGE_ID] for id in found))[:10]
        shares.append(len({*exact} & {*nearest}) / len(exact))
        sizes.append(sum(spaces.sizes[space] for space in asked))
    times = (f"{statistics.median(took):.1f} / {percentile(took, 0.95):.0f}" for took in passes)
    return [round(statistics.mean(sizes)), *times, f"{statistics.mean(shares):.3f}"]


def main() -> None:
    """Measure each layout at each size, and print two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collections")
    parser.add_argument("--spaces", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--layouts", nargs="+", default=["own", "1", "64", "sql"])
    parser.add_argument("--questions", type=int, default=40, help="for each reader")
    parser.add_argument("--database", default=topology.POSTGRES, help="for `postgresql`; only temporary tables")
    options = parser.parse_args()
    queries, costs = [], []
    for count, layout in itertools.product(options.spaces, options.layouts):
        spaces, database = Spaces(count), options.database if layout == "postgresql" else ""
        create = partial(SqlIndex, database) if "sql" in layout else partial(ChromaIndex, layout)
        with workbench() as folder, closing(create(folder, spaces)) as index:
            for (by, ask), read in itertools.product(index.asks().items(), READERS):
                queries.append([count, layout, by, read, *measure(ask, spaces, READERS[read], options.questions)])
            moving = [_seconds(partial(index.move, *spaces.move(number))) for number in range(MOVES)]
            costs.append([count, sum(spaces.sizes), layout, 1000 * statistics.median(moving), *index.costs()])
    table(QUERIES, queries)
    print()
    table(COSTS, costs)


if __name__ == "__main__":
    main()

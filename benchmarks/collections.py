"""Small spaces in shared collections, by the capacity of these, compared with a dedicated collection for each.

    taskset -c 1 python -m benchmarks.collections [--spaces 100 1000] [--capacities 0 2000 4000]

Capacity 0 dedicates a collection to each space. Exchanges are stored, indexed, searched, moved and purged by Cato's own
functions; only their vectors are made up, around a few topics for each space, and written into the embedding cache.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from timeit import timeit
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.bench import CHILDREN
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.temporary_store import temporary_store
from tests import server, topology

if TYPE_CHECKING:
    from cato_web.accounts.models import User
    from memory.models import Exchange, Space

DIMENSION, TOPICS, PARTS, BATCH, MB = 384, 200, 3, 500, 1024 * 1024
MOVED, MOVES = 7, 9  # exchanges of a moved thread, threads
READERS = {"5": 5, "50": 50, "the 50 largest": -50}
QUERIES = ["spaces", "capacity", "read", "vectors", "first, ms", "again, ms", "recall@10"]
COSTS = ["spaces", "vectors", "capacity", "indexed, s", "collections", "server, MB", "files", "disk, MB", "rebuild, s"]
COSTS += ["of vectors", "move, ms", "restart, s", *(f"{readers}, s" for readers in READERS)]
Vectors = NDArray[np.float32]
Row = list[Any]
_topics = np.random.default_rng(1).standard_normal((TOPICS, DIMENSION)).astype(np.float32) / DIMENSION**0.5
_seconds = partial(timeit, number=1)


def around_topics(space: int, size: int, seed: int = 3) -> Vectors:
    """Return `size` unit vectors around the five topics of the space."""
    topics = np.random.default_rng([4, space]).choice(TOPICS, 5)
    numbers = np.random.default_rng([seed, space])
    noise = numbers.standard_normal((size, DIMENSION)).astype(np.float32) * 0.8 / DIMENSION**0.5
    rows = _topics[numbers.choice(topics, size)] + noise
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


class Filled:
    """Spaces of 2 to 10 exchanges (84 %) and of 10 to 100 (to 33 from 5,000 spaces on), each with three vectors."""

    def __init__(self, count: int, person: User) -> None:
        from memory.models import Space

        limits = [(2, 11) if n % 25 < 21 else (10, 34 if count >= 5000 else 101) for n in range(count)]
        self.sizes = [int(np.random.default_rng([2, n]).integers(*limit)) for n, limit in enumerate(limits)]
        self.spaces = [Space(kind=Space.Kind.GROUP, name=f"Group {n}") for n in range(count)]
        Space.objects.bulk_create(self.spaces)
        self.ids: list[list[uuid.UUID]] = [self._fill(n, person) for n in range(count)]

    def vectors(self, space: int) -> Vectors:
        return around_topics(space, PARTS * self.sizes[space])

    def question(self, reader: int, count: int) -> tuple[list[int], Vectors]:
        """Return the spaces that a reader may read, and a vector near one of them."""
        every = sorted(range(len(self.sizes)), key=self.sizes.__getitem__)
        spaces = random.Random(reader).sample(every, count) if count > 0 else every[count:]
        return spaces, around_topics(spaces[0], 1, seed=reader)[0]

    def nearest(self, spaces: list[int], vector: Vectors) -> set[str]:
        """Return the ten nearest exchanges by exact comparison."""
        ids = [id.hex for space in spaces for id in self.ids[space]]
        rows = np.concatenate([self.vectors(space) for space in spaces])
        best = (rows @ vector).reshape(-1, PARTS).max(axis=1)
        return {ids[i] for i in np.argsort(-best)[:10]}

    def _fill(self, number: int, person: User) -> list[uuid.UUID]:
        from django.utils import timezone

        from memory.embeddings import cache
        from memory.index import generations
        from memory.models import EmbeddingJob, Exchange

        generation, now = generations.active_generation(), timezone.now()
        rows = [
            Exchange(
                space=self.spaces[number], owner=person, user_message="x", assistant_message="y", timestamp=now, source="import", size=1,
                content_hash=uuid.uuid4().hex, thread_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {i // MOVED}"),
            )
            for i in range(self.sizes[number])
        ]  # fmt: skip
        vectors = self.vectors(number).reshape(-1, PARTS, DIMENSION)
        cached = {row.content_hash: parts for row, parts in zip(rows, vectors, strict=True)}
        Exchange.objects.bulk_create(rows)
        cache.store_documents(generation.provider, generation.model, cached)
        EmbeddingJob.objects.bulk_create(EmbeddingJob(exchange=row, generation=generation, due_at=now) for row in rows)
        return [row.pk for row in rows]


def search(filled: Filled, spaces: list[int], vector: Vectors) -> list[str]:
    """Return the ids of the exchanges that a search of these spaces takes as candidates, nearest first."""
    from django.utils import timezone

    from memory.index import generations
    from memory.retrieval.candidates import NEAREST
    from memory.retrieval.types import Query
    from memory.retrieval.vector_search import nearest

    readable = frozenset(filled.spaces[space].pk for space in spaces)
    generation, now = generations.active_generation(), timezone.now()
    query = Query(
        text="", get_vector=lambda: vector, generation=generation, spaces=readable, limit=10, now=now
    )  # fmt: skip
    return list(nearest(query, NEAREST))


def measure_queries(filled: Filled, count: int, number: int) -> Row:
    """Ask each question twice; return times and recall. Fails if an unreadable exchange is a candidate."""
    passes, shares, sizes = (list[float](), list[float]()), list[float](), list[int]()
    for took, reader in itertools.product(passes, range(8000, 8000 + number)):
        spaces, vector = filled.question(reader, count)
        started = time.perf_counter()
        found = search(filled, spaces, vector)
        took.append(1000 * (time.perf_counter() - started))
        assert set(found) <= {id.hex for space in spaces for id in filled.ids[space]}
        exact = filled.nearest(spaces, vector)
        shares.append(len(exact & {*found[:10]}) / len(exact))
        sizes.append(PARTS * sum(filled.sizes[space] for space in spaces))
    times = (f"{statistics.median(took):.1f} / {percentile(took, 0.95):.0f}" for took in passes)
    return [round(statistics.mean(sizes)), *times, f"{statistics.mean(shares):.3f}"]


def measure_costs(filled: Filled) -> Row:
    """Measure the server, rebuild the collection of a typical vector, move threads, restart the server, and ask."""
    from django.db.models import Sum

    from memory.index import purge
    from memory.models import Collection

    process = _chroma()
    server_mb, files = process.memory_full_info().pss / MB, process.num_fds()
    folder = Path(os.environ["CATO_DATA_DIR"]).parent
    disk = sum(path.stat().st_size for path in (folder / "chroma").rglob("*") if path.is_file()) / MB
    held = {row: row.stored for row in Collection.objects.annotate(stored=Sum("embeddings__parts"))}
    mean = sum(size * size for size in held.values()) / sum(held.values())  # of a random vector's collection
    typical = min(held, key=lambda row: abs(held[row] - mean))
    rebuilt = _seconds(partial(purge.rebuild_collection, typical)) - purge._READER_GRACE
    moved = 1000 * statistics.median(_seconds(partial(_move, filled, number)) for number in range(MOVES))
    process.terminate()
    process.wait()
    port = urlsplit(os.environ["CHROMA_URL"]).port or 0
    restarted = []
    restart = _seconds(lambda: restarted.append(_start_chroma(folder, port)))
    asked = [_seconds(partial(search, filled, *filled.question(9000, n))) for n in READERS.values()]
    restarted[0].end()
    return [len(held), round(server_mb), files, round(disk), rebuilt, held[typical], moved, restart, *asked]


def measure(count: int, capacity: int, questions: int) -> tuple[list[Row], Row]:
    """Fill a new store, and return the rows of both tables."""
    with temporary_store() as person:
        from memory import api
        from memory.index import generations, placement

        generations.check_dimension(generations.active_generation(), DIMENSION)
        placement.CAPACITY = capacity
        if not capacity:
            placement.MAX_SHARED_SPACE = -1
        filled = Filled(count, person)
        indexed = _seconds(api.index_pending)
        asked = [[count, capacity, read, *measure_queries(filled, n, questions)] for read, n in READERS.items()]
        return asked, [count, PARTS * sum(filled.sizes), capacity, indexed, *measure_costs(filled)]


def _move(filled: Filled, number: int) -> None:
    from memory import api
    from memory.models import Exchange

    number = [n for n, size in enumerate(filled.sizes) if size >= MOVED][number]
    moved: Exchange = Exchange.objects.get(pk=filled.ids[number][0])
    target: Space = filled.spaces[len(filled.spaces) - 1 - number]
    assert moved.thread_id is not None
    assert api.move_thread(moved.thread_id, to=target, by=moved.owner_id) == MOVED
    api.index_pending()


def _chroma() -> psutil.Process:
    children = psutil.Process().children(recursive=True)
    return next(
        child
        for child in children
        if any(word in " ".join(child.cmdline()) for word in ("chroma run", CHILDREN["chroma"]))
    )


def _start_chroma(folder: Path, port: int) -> server.Process:
    process = server.start_chroma(folder, "restarted", folder / "chroma", port)
    server.wait_for(lambda: topology.is_open(port), "Chroma", seconds=60, every=0.01)
    return process


def main() -> None:
    """Measure each capacity at each size, and print two tables."""
    parser = command_parser("collections", __doc__)
    parser.add_argument("--spaces", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--capacities", type=int, nargs="+", default=[0, 2000, 4000])
    parser.add_argument("--questions", type=int, default=40, help="for each reader")
    options = parser.parse_args()
    queries: list[Row] = []
    costs: list[Row] = []
    # A process for each store, because Django is set up once.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for count, capacity in itertools.product(options.spaces, options.capacities):
            asked, cost = processes.submit(measure, count, capacity, options.questions).result()
            queries += asked
            costs.append(cost)
    table(QUERIES, queries)
    print()
    table(COSTS, costs)


if __name__ == "__main__":
    main()

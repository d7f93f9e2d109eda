"""Search, ingestion and memory by the size of the store, each compared with a lower bound.

    python -m benchmarks.sizes 1000 10000 100000 [--database postgresql://…/an_empty_one] [--minutes 15]

A Chroma server, SQLite (or the given empty database) and this process in place of web process and worker; the store is
filled by benchmarks/synthetic_store.py. Every question is used once. Compared variants alternate, so that other load
affects both. Filling leaves memory in this process's heap; its peak is measured from after that.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from benchmarks.bare_chroma import chroma_client
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.synthetic_store import (
    BROAD_SHARE,
    NARROW_SHARE,
    Layout,
    Texts,
    Vectors,
    exact_similarities,
    fill,
    lay_out,
)
from benchmarks.temporary_store import temporary_store

if TYPE_CHECKING:
    from memory.index.chroma import Handle
    from memory.retrieval.types import Query
    from memory.spaces.access import SpaceIds

QUESTIONS = 120  # for each measurement
WARM_UP = 5  # uncounted, of each variant, to connect and load
FOUND = 20  # hits of a search page
BARE = 60  # vectors that a bare query requests
TEN = 10  # recall@
TOGETHER = 64  # arriving exchanges at a time
MB = 1024 * 1024
# Milliseconds at the median, on two idle cores.
SEARCH_TARGETS = {10_000: 25.0, 100_000: 40.0}
RECALL_TARGETS = {100_000: 30.0}
RECALL_AT_TEN, INGEST_SHARE = 0.99, 0.9

Calls = Mapping[str, Callable[[Any], object]]
Times = dict[str, list[float]]  # of each call, in milliseconds
Row = tuple[object, ...]
# Each table with its header; times are medians, or medians / 95th percentiles.
TABLES = {
    "Search of all spaces, of the person's own, of one with 1 %; recall; what is under it, ms": (
        "exchanges", "all spaces", "own", "1 %", "recall", "own", "recall, two questions", "bare query", "embedding", "target"
    ),
    "Parts of a search of all spaces, ms": ("exchanges", "embedding", "vectors", "words", "rows", "the rest", "whole"),
    "Recall@10 against exact search": ("exchanges", "reader", "collections", "as searched", "asked for 10 alone"),
    "Search of all spaces with filters, ms": ("exchanges", "none", f"1 in {NARROW_SHARE}", f"1 in {BROAD_SHARE}"),
    "Memory, MB": ("exchanges", "Chroma", "peak", "searching", "peak"),
    "Strategies, at the largest size": ("strategy", "ms"),
    "Ingestion of further exchanges, at the largest size": ("by", "exchanges/s", "of bare", "process, MB", "peak"),
}  # fmt: skip
SEARCH, PARTS, FOUND_TABLE, FILTERS, MEMORY, STRATEGIES, INGEST = TABLES


def main() -> None:
    """Fill, measure each size, ingest, and print the tables."""
    parser = command_parser("sizes", __doc__)
    parser.add_argument("exchanges", type=int, nargs="+")
    parser.add_argument("--database", default="", help="the address of an empty PostgreSQL database; else SQLite")
    parser.add_argument("--arrivals", type=int, default=1024, help="exchanges whose ingestion is measured")
    parser.add_argument("--minutes", type=float, default=15, help="a size that takes longer to fill is given up")
    options = parser.parse_args()
    rows: dict[str, list[Row]] = {title: [] for title in TABLES}
    with temporary_store(options.database) as person:
        layout, texts = lay_out(person), Texts(seed=7)
        for exchanges in sorted(options.exchanges):
            started = time.monotonic()
            if not fill(layout, texts, exchanges, seconds=60 * options.minutes):
                print(f"{exchanges:,} exchanges were given up: not filled in {options.minutes:g} minutes.")
                break
            print(
                f"{exchanges:,} exchanges after {time.monotonic() - started:.0f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            measure(layout, exchanges, texts.questions(), rows)
        rows[STRATEGIES] = by_strategy(layout, texts.questions())
        rows[INGEST] = arrivals(layout, texts, options.arrivals)
    for title, head in TABLES.items():
        print(f"\n{title}")
        table(head, rows[title])


def measure(layout: Layout, exchanges: int, questions: Iterator[str], rows: dict[str, list[Row]]) -> None:
    """Add the measurements of one size to the tables."""
    process = psutil.Process()
    chroma = next(child for child in process.children() if "CHROMA_PORT" in child.environ())
    _reset_peak(process)
    _reset_peak(chroma)
    took = searches(layout, questions)
    medians = {name: statistics.median(times) for name, times in took.items()}
    targets = _verdict(medians["all"], SEARCH_TARGETS.get(exchanges), "search ")
    targets += _verdict(medians["recall"], RECALL_TARGETS.get(exchanges), "recall ")
    columns = ("all", "own", "small", "recall", "recall own", "together", "bare", "embedding")
    rows[SEARCH].append((exchanges, *(_pair(took[name]) for name in columns), targets))
    stages = [medians[name] for name in ("embedding", "vectors", "words", "rows")]
    rest = medians["all"] - sum(stages) + min(medians["vectors"], medians["words"])  # these two run concurrently
    rows[PARTS].append((exchanges, *stages, rest, medians["all"]))
    rows[FILTERS].append((exchanges, *map(_pair, filtered(layout, questions).values())))
    rows[MEMORY].append((exchanges, *_sizes(chroma), *_sizes(process)))
    rows[FOUND_TABLE] += [(exchanges, *row) for row in against_exact(layout, questions)]
    print(f"measured; load {os.getloadavg()[0]:.1f}", flush=True)


def searches(layout: Layout, questions: Iterator[str]) -> Times:
    """Measure searches as made by people and the chat, their stages, and the bare operations."""
    from memory import api
    from memory.index import generations
    from memory.lexical.candidates import build_lexical_query, lexical_candidates
    from memory.retrieval.candidate_rows import CandidateLoader
    from memory.retrieval.candidates import LEXICAL_CANDIDATES, NEAREST, VECTOR_CANDIDATES
    from memory.retrieval.vector_search import nearest
    from memory.spaces import access

    readable = access.readable_space_ids(layout.person.pk)
    generation = generations.active_generation()
    embedder = generations.embedder_for(generation)
    find = partial(api.search, count=FOUND)
    largest = _bare(generation.placements.get(space=layout.own, is_current=True).collection.name)

    def words(text: str) -> list[str]:
        return lexical_candidates(build_lexical_query(text, readable), list(readable), LEXICAL_CANDIDATES)

    def with_vector(text: str) -> Query:
        return _query(text, embedder.embed_query(text), readable)

    def candidates(text: str) -> tuple[list[str], list[str]]:
        return words(text), list(nearest(with_vector(text), NEAREST))[:VECTOR_CANDIDATES]

    def read(found: tuple[list[str], list[str]]) -> None:
        reader = CandidateLoader(readable, generations.active_generation().pk)
        for ids in found:
            reader.read(ids)

    return interleave(
        questions,
        {
            "all": partial(find, spaces=readable),
            "own": partial(find, spaces=frozenset({layout.own.pk})),
            "small": partial(find, spaces=frozenset({layout.small.pk})),
            "recall": lambda text: api.recall([text], spaces=readable),
            "recall own": lambda text: api.recall([text], spaces=frozenset({layout.own.pk})),
            "together": lambda text: api.recall([text, "And when was that?"], spaces=readable),
            "bare": lambda query: largest.query(query.vector[None], n_results=BARE, include=["distances"]),
            "embedding": embedder.embed_query,
            "vectors": lambda query: nearest(query, NEAREST),
            "words": words,
            "rows": read,
        },
        prepare={"bare": with_vector, "vectors": with_vector, "rows": candidates},
    )


def filtered(layout: Layout, questions: Iterator[str]) -> Times:
    """Measure searches without a filter, with a selective one, and with one that half of all rows match."""
    from memory import api
    from memory.filters import parse_filter
    from memory.spaces import access

    readable = access.readable_space_ids(layout.person.pk)
    find = partial(api.search, spaces=readable, count=FOUND)
    narrow, broad = parse_filter({"shelf": 7}), parse_filter({"side": 1})
    return interleave(
        questions, {"none": find, "narrow": partial(find, filters=narrow), "broad": partial(find, filters=broad)}
    )


def against_exact(layout: Layout, questions: Iterator[str]) -> list[Row]:
    """Return the share of the ten exactly nearest exchanges that the index finds, over all questions."""
    from memory.index import generations
    from memory.models import Collection, Exchange
    from memory.retrieval.candidates import NEAREST
    from memory.retrieval.vector_search import nearest
    from memory.spaces import access

    embedder = generations.embedder_for(generations.active_generation())
    get_vector = [(text, embedder.embed_query(text)) for text, _ in zip(questions, range(QUESTIONS), strict=False)]
    readable = access.readable_space_ids(layout.person.pk)
    rows: list[Row] = []
    for reader, space_ids in (("1 %", frozenset({layout.small.pk})), ("all spaces", readable)):
        exchanges = list(Exchange.objects.filter(space_id__in=space_ids).values_list("id", "content_hash"))
        similarities = exact_similarities(
            [digest for _, digest in exchanges], np.stack([vector for _, vector in get_vector])
        )
        shares: dict[int, list[float]] = {NEAREST: [], TEN: []}
        for (text, vector), exact in zip(get_vector, similarities.T, strict=True):
            best = {exchanges[i][0].hex for i in np.argsort(-exact)[:TEN]}
            for count, found in shares.items():
                near = nearest(_query(text, vector, space_ids), count)
                found.append(len(best.intersection(list(near)[:TEN])) / len(best))
        means = [statistics.mean(found) for found in shares.values()]
        collections = Collection.objects.filter(placements__space__in=space_ids).distinct().count()
        verdict = _verdict(means[0], RECALL_AT_TEN, at_least=True)
        rows.append((reader, collections, f"{means[0]:.4f} {verdict}", f"{means[1]:.4f}"))
    return rows


def by_strategy(layout: Layout, questions: Iterator[str]) -> list[Row]:
    """Measure every strategy on different questions, ungated, over all spaces."""
    from memory.retrieval import strategy_names
    from memory.retrieval.search import rank
    from memory.spaces import access

    readable = access.readable_space_ids(layout.person.pk)
    by = partial(rank, spaces=readable, limit=FOUND)
    took = interleave(questions, {name: partial(by, strategy_name=name) for name in strategy_names()})
    return [(name, _pair(times)) for name, times in took.items()]


def arrivals(layout: Layout, texts: Texts, count: int) -> list[Row]:
    """Measure ingestion of `count` exchanges into a new space, and adding the vectors to new collections by a bare loop.

    A second loop also stores the metadata for filters, as Cato does.
    """
    from memory import api
    from memory.filters import chroma_fields
    from memory.index import generations, store
    from memory.index.parts import embedding_texts
    from memory.index.vectors import vector_ids
    from memory.models import Space

    space = Space.objects.create(kind=Space.Kind.GROUP, name="Arrivals")
    embedder = generations.embedder_for(generations.active_generation())
    bare = {}
    for name in ("bare", "bare-with-fields"):
        store.recreate_collection(name, unless_touched_within=0)
        bare[name] = _bare(name)
    # Spaces that grew while the store was filled may still move to collections of their own.
    while api.index_pending():
        pass
    process = psutil.Process()
    _reset_peak(process)
    cato, loops = 0.0, dict.fromkeys(bare, 0.0)
    for _ in range(count // TOGETHER):
        items = texts.exchanges(layout, space, TOGETHER)
        started = time.perf_counter()
        stored = api.remember_many(items)
        indexed = api.index_pending()
        cato += time.perf_counter() - started
        assert indexed == TOGETHER, indexed
        parts = [(row, embedding_texts(row)) for row in stored]
        ids = [id for row, pieces in parts for id in vector_ids(row.pk, 1, len(pieces))]
        metadatas: tuple[Any, Any] = (None, [chroma_fields(row, row.metadata) for row, pieces in parts for _ in pieces])
        for (name, collection), metadata in zip(bare.items(), metadatas, strict=True):
            started = time.perf_counter()
            vectors = embedder.embed_documents([text for _, pieces in parts for text in pieces])
            collection.add(ids=ids, embeddings=vectors, metadatas=metadata)
            loops[name] += time.perf_counter() - started
    shares = [loop / cato for loop in loops.values()]
    ratios = f"{shares[0]:.2f} {_verdict(shares[0], INGEST_SHARE, at_least=True)}, {shares[1]:.2f} of that with fields"
    rows = [(f"{name} loop", count / loop, "", "", "") for name, loop in loops.items()]
    return [("Cato", count / cato, ratios, *_sizes(process)), *rows]


def interleave(questions: Iterator[str], calls: Calls, prepare: Calls | None = None) -> Times:
    """Measure each call with QUESTIONS different questions, alternating between the calls.

    The time of `prepare` is not counted.
    """
    took: Times = {name: [] for name in calls}
    for _ in range(QUESTIONS + WARM_UP):
        for name, call in calls.items():
            text = next(questions)
            prepared = prepare[name](text) if prepare and name in prepare else text
            started = time.perf_counter()
            call(prepared)
            took[name].append(1000 * (time.perf_counter() - started))
    return {name: times[WARM_UP:] for name, times in took.items()}


def _query(text: str, vector: Vectors, space_ids: SpaceIds) -> Query:
    from django.utils import timezone

    from memory.index import generations
    from memory.retrieval.types import Query

    active = generations.active_generation()
    return Query(
        text=text, get_vector=lambda: vector, generation=active, spaces=space_ids, limit=FOUND, now=timezone.now()
    )


def _bare(collection: str) -> Handle:
    """Return a collection of Chroma's own client."""
    return chroma_client(os.environ["CHROMA_URL"]).get_collection(collection, embedding_function=None)


def _reset_peak(process: psutil.Process) -> None:
    """Reset the kernel's memory peak of the process."""
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def _sizes(process: psutil.Process) -> tuple[float, float]:
    """Return the proportional set size now and the highest resident set size, in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return process.memory_full_info().pss / MB, peak


def _pair(times: list[float]) -> str:
    return f"{statistics.median(times):.1f} / {percentile(times, 0.95):.0f}"


def _verdict(value: float, target: float | None, label: str = "", *, at_least: bool = False) -> str:
    """Return whether a target is met, in words; "" without a target."""
    if target is None:
        return ""
    met = value >= target if at_least else value <= target
    return f"({label}{'≥' if at_least else '≤'} {target:g}: {'met' if met else 'missed'})"


if __name__ == "__main__":
    main()

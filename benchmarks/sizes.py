"""Search, ingest and memory by the size of the store, each against the least that any such store would take.

    python -m benchmarks.sizes 1000 10000 100000 [--database postgresql://…/an_empty_one] [--minutes 15]

A Chroma server, SQLite (or the empty database that is named) and this process, which stands in for web and worker; the
store is filled as benchmarks/synthetic_store.py says. Every question is asked once. What is compared takes turns, so that other
work slows both alike. The process keeps what filling has left in its heap; its peak is counted from after that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import psutil

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
from benchmarks.temporary_store import own_store

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from memory.retrieval.types import Query
    from memory.spaces.access import SpaceIds

QUESTIONS = 120  # for each thing that is measured
WARM_UP = 5  # of each that connect and load, and are not counted
FOUND = 20  # results of a page of search
BARE = 60  # vectors a bare query asks for
TEN = 10  # recall@
ARRIVALS, TOGETHER = 1024, 64  # exchanges that come in, and how many `index_pending` takes at once
MB = 1024 * 1024
# Milliseconds at the median, on two idle cores.
SEARCH_TARGETS = {10_000: 25.0, 100_000: 40.0}
RECALL_TARGETS = {100_000: 30.0}
RECALL_AT_TEN, INGEST_SHARE = 0.99, 0.9

Calls = Mapping[str, Callable[[Any], object]]
Times = dict[str, list[float]]  # of each call, in milliseconds
Row = tuple[object, ...]
# Each table with its head; times are medians, or medians / 95th percentiles.
TABLES = {
    "Search of all spaces, of the person's own, of one with 1 %; recall; what is under it, ms": (
        "exchanges", "all spaces", "own", "1 %", "recall", "own", "recall, two questions", "bare query", "embedding", "target"
    ),
    "Parts of a search of all spaces, ms": ("exchanges", "embedding", "vectors", "words", "rows", "the rest", "whole"),
    "Recall@10 against exact search": ("exchanges", "reader", "collections", "as searched", "asked for 10 alone"),
    "Search of all spaces with filters, ms": ("exchanges", "none", f"1 in {NARROW_SHARE}", f"1 in {BROAD_SHARE}"),
    "Memory, MB": ("exchanges", "Chroma", "peak", "searching", "peak"),
    "Strategies, at the largest size": ("strategy", "ms"),
    f"{ARRIVALS:,} exchanges more, at the largest size": ("by", "exchanges/s", "of bare", "process, MB", "peak"),
}  # fmt: skip
SEARCH, PARTS, FOUND_TABLE, FILTERS, MEMORY, STRATEGIES, INGEST = TABLES


def main() -> None:
    """Fill, measure at each size, take in what arrives, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("exchanges", type=int, nargs="+")
    parser.add_argument("--database", default="", help="the address of an empty PostgreSQL database; else SQLite")
    parser.add_argument("--minutes", type=float, default=15, help="a size that takes longer to fill is given up")
    options = parser.parse_args()
    rows: dict[str, list[Row]] = {title: [] for title in TABLES}
    with own_store(options.database) as person:
        layout, texts = lay_out(person), Texts(seed=7)
        for exchanges in sorted(options.exchanges):
            begun = time.monotonic()
            if not fill(layout, texts, exchanges, seconds=60 * options.minutes):
                print(f"{exchanges:,} exchanges were given up: not filled in {options.minutes:g} minutes.")
                break
            print(
                f"{exchanges:,} exchanges after {time.monotonic() - begun:.0f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            measure(layout, exchanges, texts.questions(), rows)
        rows[STRATEGIES] = by_strategy(layout, texts.questions())
        rows[INGEST] = arrivals(layout, texts)
    for title, head in TABLES.items():
        print(f"\n{title}")
        table(head, rows[title])


def measure(layout: Layout, exchanges: int, questions: Iterator[str], rows: dict[str, list[Row]]) -> None:
    """Add to the tables what is measured at each size."""
    here = psutil.Process()
    chroma = next(child for child in here.children() if "CHROMA_PORT" in child.environ())
    _begin_peak(here)
    _begin_peak(chroma)
    took = searches(layout, questions)
    medians = {name: statistics.median(times) for name, times in took.items()}
    targets = _verdict(medians["all"], SEARCH_TARGETS.get(exchanges), "search ")
    targets += _verdict(medians["recall"], RECALL_TARGETS.get(exchanges), "recall ")
    shown = ("all", "own", "small", "recall", "recall own", "together", "bare", "embedding")
    rows[SEARCH].append((exchanges, *(_pair(took[name]) for name in shown), targets))
    stages = [medians[name] for name in ("embedding", "vectors", "words", "rows")]
    rest = medians["all"] - sum(stages) + min(medians["vectors"], medians["words"])  # these two go on at once
    rows[PARTS].append((exchanges, *stages, rest, medians["all"]))
    rows[FILTERS].append((exchanges, *map(_pair, filtered(layout, questions).values())))
    rows[MEMORY].append((exchanges, *_sizes(chroma), *_sizes(here)))
    rows[FOUND_TABLE] += [(exchanges, *row) for row in against_exact(layout, questions)]
    print(f"measured; load {os.getloadavg()[0]:.1f}", flush=True)


def searches(layout: Layout, questions: Iterator[str]) -> Times:
    """Searches as people and the chat make them, the stages they go through, and what is under them."""
    from memory import api
    from memory.index import generations
    from memory.lexical.candidates import build_lexical_query, lexical_candidates
    from memory.retrieval.candidate_rows import CandidateLoader
    from memory.retrieval.candidates import BY_MEANING, BY_WORDS, NEAREST
    from memory.retrieval.vector_search import nearest
    from memory.spaces import access

    everything = access.readable_space_ids(layout.person.pk)
    generation = generations.active_generation()
    embedder = generations.embedder_for(generation)
    find = partial(api.search, count=FOUND)
    largest = _bare(generation.collections.get(space=layout.own).name)

    def words(text: str) -> list[str]:
        return lexical_candidates(build_lexical_query(text, everything), list(everything), BY_WORDS)

    def with_vector(text: str) -> Query:
        return _query(text, embedder.embed_query(text), everything)

    def candidates(text: str) -> tuple[list[str], list[str]]:
        return words(text), list(nearest(with_vector(text), NEAREST))[:BY_MEANING]

    def read(found: tuple[list[str], list[str]]) -> None:
        reader = CandidateLoader(everything)
        for ids in found:
            reader.read(ids)

    return in_turn(
        questions,
        {
            "all": partial(find, spaces=everything),
            "own": partial(find, spaces=frozenset({layout.own.pk})),
            "small": partial(find, spaces=frozenset({layout.small.pk})),
            "recall": lambda text: api.recall([text], spaces=everything),
            "recall own": lambda text: api.recall([text], spaces=frozenset({layout.own.pk})),
            "together": lambda text: api.recall([text, "And when was that?"], spaces=everything),
            "bare": lambda query: largest.query(query.vector[None], n_results=BARE, include=["distances"]),
            "embedding": embedder.embed_query,
            "vectors": lambda query: nearest(query, NEAREST),
            "words": words,
            "rows": read,
        },
        prepare={"bare": with_vector, "vectors": with_vector, "rows": candidates},
    )


def filtered(layout: Layout, questions: Iterator[str]) -> Times:
    """Searches without a filter, with one that few pass, with one that half of all pass."""
    from memory import api
    from memory.filters import parse_filter
    from memory.spaces import access

    everything = access.readable_space_ids(layout.person.pk)
    find = partial(api.search, spaces=everything, count=FOUND)
    narrow, broad = parse_filter({"shelf": 7}), parse_filter({"side": 1})
    return in_turn(
        questions, {"none": find, "narrow": partial(find, filters=narrow), "broad": partial(find, filters=broad)}
    )


def against_exact(layout: Layout, questions: Iterator[str]) -> list[Row]:
    """How many of the ten exchanges whose best vectors are nearest the index finds, over all questions."""
    from memory.index import generations
    from memory.models import Collection, Exchange
    from memory.retrieval.candidates import NEAREST
    from memory.retrieval.vector_search import nearest
    from memory.spaces import access

    embedder = generations.embedder_for(generations.active_generation())
    asked = [(text, embedder.embed_query(text)) for text, _ in zip(questions, range(QUESTIONS), strict=False)]
    everything = access.readable_space_ids(layout.person.pk)
    rows: list[Row] = []
    for reader, space_ids in (("1 %", frozenset({layout.small.pk})), ("all spaces", everything)):
        held = list(Exchange.objects.filter(space_id__in=space_ids).values_list("id", "content_hash"))
        similarities = exact_similarities([digest for _, digest in held], np.stack([vector for _, vector in asked]))
        shares: dict[int, list[float]] = {NEAREST: [], TEN: []}
        for (text, vector), exact in zip(asked, similarities.T, strict=True):
            best = {held[i][0].hex for i in np.argsort(-exact)[:TEN]}
            for count, found in shares.items():
                near = nearest(_query(text, vector, space_ids), count)
                found.append(len(best.intersection(list(near)[:TEN])) / len(best))
        means = [statistics.mean(found) for found in shares.values()]
        collections = Collection.objects.filter(space_id__in=space_ids).count()
        verdict = _verdict(means[0], RECALL_AT_TEN, at_least=True)
        rows.append((reader, collections, f"{means[0]:.4f} {verdict}", f"{means[1]:.4f}"))
    return rows


def by_strategy(layout: Layout, questions: Iterator[str]) -> list[Row]:
    """Every strategy on questions of its own, ungated, over all spaces."""
    from memory.retrieval import strategy_names
    from memory.retrieval.search import rank
    from memory.spaces import access

    everything = access.readable_space_ids(layout.person.pk)
    by = partial(rank, spaces=everything, wanted=FOUND)
    took = in_turn(questions, {name: partial(by, strategy_name=name) for name in strategy_names()})
    return [(name, _pair(times)) for name, times in took.items()]


def arrivals(layout: Layout, texts: Texts) -> list[Row]:
    """Exchanges into a new space through Cato, and their texts' vectors into new collections by a bare loop.

    The second loop has what stands beside each vector for filters stored as well, as Cato does.
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
    here = psutil.Process()
    _begin_peak(here)
    cato, loops = 0.0, dict.fromkeys(bare, 0.0)
    for _ in range(ARRIVALS // TOGETHER):
        items = texts.exchanges(layout, space, TOGETHER)
        begun = time.perf_counter()
        kept = api.remember_many(items)
        done = api.index_pending()
        cato += time.perf_counter() - begun
        assert done == TOGETHER, done
        parts = [(row, embedding_texts(row)) for row in kept]
        ids = [id for row, some in parts for id in vector_ids(row.pk, 1, len(some))]
        fields = [chroma_fields(row, row.metadata) for row, some in parts for _ in some]
        for (name, collection), beside in zip(bare.items(), (None, fields), strict=True):
            begun = time.perf_counter()
            vectors = embedder.embed_documents([text for _, some in parts for text in some])
            collection.add(ids=ids, embeddings=vectors, metadatas=beside)
            loops[name] += time.perf_counter() - begun
    shares = [loop / cato for loop in loops.values()]
    told = f"{shares[0]:.2f} {_verdict(shares[0], INGEST_SHARE, at_least=True)}, {shares[1]:.2f} of that with fields"
    rows = [(f"{name} loop", ARRIVALS / loop, "", "", "") for name, loop in loops.items()]
    return [("Cato", ARRIVALS / cato, told, *_sizes(here)), *rows]


def in_turn(questions: Iterator[str], calls: Calls, prepare: Calls | None = None) -> Times:
    """What each call takes, each with QUESTIONS of its own, one after the other in turn.

    What `prepare` makes of a question for a call is not counted.
    """
    took: Times = {name: [] for name in calls}
    for _ in range(QUESTIONS + WARM_UP):
        for name, call in calls.items():
            text = next(questions)
            given = prepare[name](text) if prepare and name in prepare else text
            begun = time.perf_counter()
            call(given)
            took[name].append(1000 * (time.perf_counter() - begun))
    return {name: times[WARM_UP:] for name, times in took.items()}


def _query(text: str, vector: Vectors, space_ids: SpaceIds) -> Query:
    from django.utils import timezone

    from memory.index import generations
    from memory.retrieval.types import Query

    serving = generations.active_generation()
    return Query(
        text=text, embedded=lambda: vector, generation=serving, spaces=space_ids, wanted=FOUND, now=timezone.now()
    )


def _bare(collection: str) -> Collection:
    """A collection as Chroma's own client gives it."""
    import chromadb
    from chromadb.config import Settings

    parts = urlsplit(os.environ["CHROMA_URL"])
    client = chromadb.HttpClient(parts.hostname or "", parts.port or 0, settings=Settings(anonymized_telemetry=False))
    return client.get_collection(collection, embedding_function=None)


def _begin_peak(process: psutil.Process) -> None:
    """Let Linux count a process's peak from now on."""
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def _sizes(process: psutil.Process) -> tuple[float, float]:
    """The proportional set size now and the highest resident set size, in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return process.memory_full_info().pss / MB, peak


def _pair(times: list[float]) -> str:
    return f"{statistics.median(times):.1f} / {percentile(times, 0.95):.0f}"


def _verdict(value: float, target: float | None, what: str = "", *, at_least: bool = False) -> str:
    """Whether a target is met, in words; "" where there is none."""
    if target is None:
        return ""
    met = value >= target if at_least else value <= target
    return f"({what}{'≥' if at_least else '≤'} {target:g}: {'met' if met else 'missed'})"


if __name__ == "__main__":
    main()

"""A large personal export by the worker, and pages meanwhile: `python -m benchmarks.export [--threads 2000] [--turns 10]`.

The embedded topology. One person has all threads; while their archive is written, they open threads one after the other.
Memory is the proportional set size of the worker.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from itertools import cycle

import psutil

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.footprint import run_in_process
from benchmarks.worker_memory import memory_of
from tests.server import Cato, Client, running

IDLE_PAGES = 40
PAUSE = 0.2  # seconds between pages


def main() -> None:
    """Build the account, export it while pages are opened, and print a table."""
    parser = command_parser("export", __doc__)
    parser.add_argument("--threads", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    with workbench() as folder, running(folder / "cato") as cato:
        person = cato.set_up()
        run_in_process(cato, "fill", str(options.threads * options.turns))
        run_in_process(cato, "threads", str(options.turns))
        _measure(cato, person, options.threads)


def _measure(cato: Cato, person: Client, threads: int) -> None:
    worker = processes(cato)["worker"]
    browser, api = cato.sign_in(person), person.api_client()
    ids = cycle(str(uuid.UUID(id)) for (id,) in cato.sql("SELECT id FROM chat_thread ORDER BY id LIMIT 200"))
    idle_pages = [_open(browser, next(ids)) for _ in range(IDLE_PAGES)]
    idle_memory, _private = memory_of(worker)
    highest, pages = idle_memory, []
    started, used = time.monotonic(), _cpu_seconds(worker)
    assert api.post("/api/export").status_code == 202
    progress: set[int] = set()
    while (export := api.get("/api/export").json())["state"] == "running":
        progress.add(export["read"])
        pages.append(_open(browser, next(ids)))
        highest = max(highest, memory_of(worker)[0])
        time.sleep(PAUSE)
    seconds, used = time.monotonic() - started, _cpu_seconds(worker) - used
    assert export["state"] == "done", export
    size = len(api.get("/api/export/archive").content) / 1e6
    head = ("threads", "entries", "archive, MB", "seconds", "CPU s", "steps", "worker idle, MB", "worker highest, MB")
    table(head, [(threads, export["read"], size, seconds, used, len(progress), idle_memory, highest)])
    print()
    table(
        ("page of a thread", "pages", "p50, ms", "p95, ms", "longest, ms"),
        [(name, len(found), *_figures(found)) for name, found in (("idle", idle_pages), ("meanwhile", pages))],
    )


def _open(browser: Client, thread: str) -> float:
    """Open the page of a thread; return the milliseconds until it is complete."""
    started = time.monotonic()
    browser.thread_page(thread)
    return 1000 * (time.monotonic() - started)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _figures(pages: list[float]) -> Iterator[float]:
    yield from (percentile(pages, share) for share in (0.5, 0.95))
    yield max(pages)


if __name__ == "__main__":
    main()

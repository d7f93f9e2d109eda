"""Memory and CPU at rest, start time and recall time by the size of the store.

    python -m benchmarks.footprint [--exchanges 0 1000 50000] [--starts 3]

The embedded topology. Memory is the proportional set size. Texts are random words and vectors random unit vectors, so
nothing passes the gate: a recall's time excludes building the prompt context.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil

from benchmarks.bench import CHILDREN, processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.index_consistency import chroma_url
from benchmarks.load import Usage
from tests.server import ROOT, Cato, Client, running

RECALLS = 200
REST = 100.0  # seconds until it is idle and the worker has released its model
IDLE = 120.0  # seconds in which its CPU is measured


def start_seconds(home: Path, times: int) -> float:
    """Return the median seconds from the command to the first page."""
    took = []
    for _ in range(times):
        started = time.monotonic()
        with running(home) as cato:
            assert httpx.get(f"{cato.url}/sign-in").status_code == 200
            took.append(time.monotonic() - started)
    return statistics.median(took)


def at_rest(cato: Cato, person: Client) -> Usage:
    """Return the usage of all processes, from when they rest after a page, a search and an embedded message."""
    browser = cato.sign_in(person)
    assert browser.get("/").status_code == 200
    assert browser.get("/search", params={"q": "garden"}).status_code == 200
    run_in_process(cato, "post", "1")
    time.sleep(REST)
    found = {"serve": psutil.Process(cato.processes[0].popen.pid), **processes(cato)}
    assert set(found) == {"serve", *CHILDREN}, found
    usage = Usage(found)
    usage.begin()
    return usage


def run_in_process(cato: Cato, *arguments: str, module: str = "in_process") -> str:
    """Run this module of `benchmarks` on this Cato's data and index; return its output."""
    environment = cato.environment | {"CHROMA_URL": chroma_url(cato), "DJANGO_SETTINGS_MODULE": "cato_web.settings"}
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=3600
    )
    return result.stdout


def main() -> None:
    """Fill, start, idle and recall at each size, and print three tables."""
    parser = command_parser("footprint", __doc__)
    parser.add_argument("--exchanges", type=int, nargs="+", default=[0, 1000, 50000])
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    memory, recalls = [], []
    with workbench() as folder:
        home = folder / "cato"
        with running(home) as cato:
            person = cato.set_up()
        for exchanges in sorted(options.exchanges):
            with running(home) as cato:
                run_in_process(cato, "fill", str(exchanges))
            second_start = start_seconds(home, options.starts)
            with running(home) as cato:
                usage = at_rest(cato, person)
                size = usage.memory()
                time.sleep(IDLE)
                cpu = 100 * sum(usage.spent().values()) / IDLE
                took = json.loads(run_in_process(cato, "recall", str(RECALLS)))
            memory.append((exchanges, *size.values(), sum(size.values()), cpu, second_start))
            recalls.append((exchanges, *took.values()))
    table(("exchanges", *(f"{name}, MB" for name in size), "sum, MB", "idle CPU, %", "second start, s"), memory)
    print()
    table(("exchanges", *(f"{name}, ms" for name in took)), recalls)


if __name__ == "__main__":
    main()

"""A complete Cato as `make run` starts it, with a full store and many accounts, compared with an empty one.

    python -m benchmarks.full_instance [--exchanges 100000] [--people 200]

Start, idle memory of each process, recall as answers wait for it, the search page, the first page, and the gaps of one
stream of 30 tokens a second; each in both, in one run, on one machine. The store is filled by
benchmarks/synthetic_store.py; one person reads all of it.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.footprint import at_rest, run_in_process, start_seconds
from tests.fake_endpoint import FakeEndpoint
from tests.fake_endpoint import start as start_endpoint
from tests.server import Cato, Client, running, wait_for
from tests.socket import open_socket

TIMES = 60
KEY = "whole"
Figures = dict[str, float | str]


def main() -> None:
    """Fill one, measure both, and print one table."""
    parser = command_parser("full_instance", __doc__)
    parser.add_argument("--exchanges", type=int, default=100_000)
    parser.add_argument("--people", type=int, default=200)
    options = parser.parse_args()
    with workbench() as folder, start_endpoint() as endpoint:
        environment = {
            "OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": KEY, "CATO_CHAT_MESSAGES_PER_MINUTE": "100000", "CATO_CHAT_CONCURRENT_ANSWERS": "100000"
        }  # fmt: skip
        homes = {"full": folder / "full", "empty": folder / "empty"}
        people, questions = {}, []
        for name, home in homes.items():
            with running(home, **environment) as cato:
                people[name] = cato.set_up()
                if name == "full":
                    # The worker would embed exchanges that get synthetic vectors.
                    worker = processes(cato)["worker"]
                    worker.suspend()
                    questions = json.loads(run_in_process(cato, "grow", str(options.exchanges), str(options.people)))
                    worker.resume()
        print(f"filled; load {os.getloadavg()[0]:.1f}", flush=True)
        found = {name: measure(homes[name], environment, people[name], endpoint, questions) for name in homes}
    head = ("what", "empty", f"{options.exchanges:,} exchanges, {options.people} accounts")
    table(head, [(label, found["empty"][label], found["full"][label]) for label in found["full"]])
    print(f"load {os.getloadavg()[0]:.1f}")


def measure(
    home: Path, environment: dict[str, str], person: Client, endpoint: FakeEndpoint, questions: list[str]
) -> Figures:
    """Measure everything of one Cato."""
    figures: Figures = {"second start to the first page, s": start_seconds(home, 3)}
    with running(home, **environment) as cato:
        memory = at_rest(cato, person).memory()
        figures |= {f"{name}, MB": size for name, size in memory.items()} | {"all, MB": sum(memory.values())}
        browser = cato.sign_in(person)
        figures["a new thread's page, ms"] = _pair(_pages(browser, ["/"] * TIMES))
        figures["search, ms"] = _pair(_pages(browser, [f"/search?q={question}" for question in questions[:TIMES]]))
        figures["recall, ms"] = _pair(_recalls(cato, browser, endpoint, questions[TIMES : 2 * TIMES]))
        figures["gaps of a stream, ms"] = _pair(_gaps(browser, endpoint), worst=0.99)
    return figures


def _pages(browser: Client, paths: list[str]) -> list[float]:
    took = []
    for path in paths:
        started = time.monotonic()
        assert browser.get(path).status_code == 200
        took.append(1000 * (time.monotonic() - started))
    return took


def _recalls(cato: Cato, browser: Client, endpoint: FakeEndpoint, questions: list[str]) -> list[float]:
    endpoint.script(KEY, answer="So it is.")
    query = "SELECT 1 FROM chat_turn WHERE thread_id = ? AND state = 'complete'"
    for question in questions:
        thread = browser.send_message(question)
        wait_for(partial(cato.sql, query, thread.replace("-", "")), "the answer")
    return [float(ms) for (ms,) in cato.sql("SELECT recall_ms FROM chat_turn WHERE recall_ms IS NOT NULL")]


def _gaps(browser: Client, endpoint: FakeEndpoint) -> list[float]:
    endpoint.script(KEY, answer=" ".join(f"word{n}" for n in range(300)), token_delay=1 / 30)
    thread = browser.send_message("Talk for a while")
    times = []
    with open_socket(browser, thread) as listener:
        listener.hello()
        end = time.monotonic() + 15
        while time.monotonic() < end:
            try:
                listener.connection.recv(timeout=2)
            except TimeoutError:
                break
            times.append(time.monotonic())
    return [1000 * (after - before) for before, after in pairwise(times[3:-3])]


def _pair(values: list[float], worst: float = 0.95) -> str:
    return f"{statistics.median(values):.0f} / {percentile(values, worst):.0f}"


if __name__ == "__main__":
    main()

"""Kill processes of a running Cato with SIGKILL while three people post messages, and check for lost or doubled data.

A fourth person adds notes, uploads documents, imports conversations and forgets (`benchmarks/memory_actions.py`), a fifth
shares and moves threads and documents in a group from which statements are extracted (`benchmarks/team_actions.py`), and
the index is built again and again by commands that are killed, too (`benchmarks/reindexing.py`).

    python -m benchmarks.kill [--kills 200] [--seed 1] [--max-pause 3]

The seed determines which process is killed when, but not what it is doing. With CATO_TEST_TOPOLOGY=services there are
two web processes and two workers, restarted here in place of a supervisor. Exit code 1 if a check fails.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.bench import processes, start_valkey, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.scenario import Report, act, model, settle_and_judge
from tests.server import Cato, kill, running, start, wait_for
from tests.topology import TOPOLOGY

_BACK_WITHIN = 180.0  # seconds, beside much other load


@dataclass
class KillReport(Report):
    """The kills, and what they led to."""

    kills: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)  # processes that ended without being killed
    max_outage: float = 0.0  # seconds until all web processes answered again


def run(home: Path, *, kills: int, seed: int, max_pause: float = 3.0, minutes: float = 60.0) -> KillReport:
    """Kill `kills` times, at most `max_pause` seconds apart while people can post, within `minutes`; then check the data."""
    report = KillReport()
    dice = random.Random(seed)
    with ExitStack() as stack:
        environment = stack.enter_context(model())
        if TOPOLOGY == "services":
            valkey = stack.enter_context(start_valkey(home))
            environment["REDIS_URL"] = valkey.environment["REDIS_URL"]
            cato = stack.enter_context(running(home / "cato", **environment))
            cato.processes.insert(0, valkey)
        else:
            cato = stack.enter_context(running(home / "cato", **environment))
        administrator = cato.set_up()
        stack.enter_context(_run_supervisor(cato, report))
        with act(cato, administrator, seed, report) as actors:
            _kill_repeatedly(cato, dice, report, kills, max_pause, time.monotonic() + 60 * minutes)
        settle_and_judge(cato, actors, report)
        report.ended.update(re.findall(r"^(\w+) ended \((?!signal 9\))", cato.logs(), re.M))
    return report


def _kill_repeatedly(
    cato: Cato, dice: random.Random, report: KillReport, kills: int, max_pause: float, end: float
) -> None:
    while report.kills.total() < kills and time.monotonic() < end:
        started = time.monotonic()
        wait_for(lambda: _all_answer(cato), "the pages to be back", _BACK_WITHIN)
        report.max_outage = max(report.max_outage, time.monotonic() - started)
        time.sleep(dice.uniform(0.1, max_pause))
        children = processes(cato)
        name = dice.choice(sorted(children))
        kill(children[name].pid)
        report.kills[name.rstrip("12")] += 1


@contextmanager
def _run_supervisor(cato: Cato, report: KillReport) -> Iterator[None]:
    """Meanwhile restart ended processes, like the machine's supervisor; `serve` does it itself."""
    ending = threading.Event()

    def supervise() -> None:
        while not ending.wait(0.2):
            for number, process in enumerate(cato.processes):
                code, name = process.popen.poll(), process.name
                if code is None or name == "prepare":
                    continue
                report.ended[name.rstrip("12")] += int(code != -signal.SIGKILL)
                cato.processes[number] = start(cato.home, name, process.command, process.environment)

    supervisor = threading.Thread(target=supervise)
    if TOPOLOGY == "services":
        supervisor.start()
    try:
        yield
    finally:
        ending.set()
        if TOPOLOGY == "services":
            supervisor.join()


def _all_answer(cato: Cato) -> bool:
    return all(httpx.get(f"{url}/healthz", timeout=2).status_code == 200 for url in cato.urls)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the results; return the exit code."""
    parser = command_parser("kill", __doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-pause", type=float, default=3.0, help="seconds between two kills")
    parser.add_argument("--minutes", type=float, default=60.0, help="no more kills after that")
    options = parser.parse_args(argv)
    print(
        f"{TOPOLOGY}: python -m benchmarks.kill --kills {options.kills} --seed {options.seed} --max-pause {options.max_pause}",
        flush=True,
    )
    with workbench() as home:
        report = run(home, kills=options.kills, seed=options.seed, max_pause=options.max_pause, minutes=options.minutes)
    rows = [
        ("topology, seed", f"{TOPOLOGY}, {options.seed}"),
        ("kills", ", ".join(f"{name} {count}" for name, count in report.kills.most_common())),
        ("ended by themselves", ", ".join(f"{name} {n}" for name, n in report.ended.items() if n) or "none"),
        ("longest wait for all pages after a kill, s", report.max_outage),
        *report.rows(),
    ]
    table(("what", "figure"), rows)
    for violation in report.violations[:50]:
        print(violation)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())

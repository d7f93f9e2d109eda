"""Random use of Cato by many people for a long time with random faults: growth of its processes, old jobs, lost data.

    python -m benchmarks.soak [--minutes 60] [--people 50] [--seed 1] [--max-actions 50000]

People post, stop answers, read pages, search, add notes, upload, share and forget. At intervals a process is killed or
stopped for five seconds, or Redis is emptied. The seed determines who does what and which fault happens when, but not how
they meet. Exceptions in the log are listed with the line that raised them. Exit code 1 if data was lost or doubled, if
database and index differ at the end, if a job was due for too long, or if a process other than Chroma, which grows with
the data, keeps growing.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import redis

from benchmarks import memory_actions
from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.consistency import is_settled, violations
from benchmarks.figures import format_counts, table
from benchmarks.growth import Growth
from benchmarks.index_consistency import count_drift, seconds_overdue
from benchmarks.posting import Posts, run_beside
from benchmarks.residents import Resident
from benchmarks.scenario import SETTLED_WITHIN, model
from tests.groups import make_group
from tests.server import Cato, Client, kill, running, wait_for

_SAMPLES_EVERY, _PAUSED = 15.0, 5.0  # seconds
_MAX_OVERDUE = 300.0  # seconds
_MAX_GROWTH = 150.0  # MB/h
# The last frame of a traceback in the log, and the class of the exception below it.
_EXCEPTION = re.compile(r'File "([^"]+)", line (\d+), in \S+\n(?: {4}.*\n)*((?:\w+\.)+[A-Z]\w+)')
_JUDGED_FROM = 25.0  # minutes: growth of a shorter run says nothing


@dataclass
class SoakReport:
    """The actions and faults during a run, and their results."""

    posts: Posts = field(default_factory=Posts)
    actions: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    growth: Growth = field(default_factory=Growth)
    overdue: dict[str, float] = field(default_factory=dict)  # the most seconds, by table of jobs
    settled_after: float = 0.0
    drift: int = 0
    exceptions: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def run(home: Path, *, minutes: float, people: int, seed: int, max_actions: int) -> SoakReport:
    """Let everybody act for this time, or until `max_actions`; then check the data."""
    report = SoakReport()
    with ExitStack() as stack:
        cato = stack.enter_context(running(home / "cato", **stack.enter_context(model())))
        residents = _move_in(cato, people, seed, report.posts)
        with ExitStack() as acting:
            for resident in residents:
                acting.enter_context(run_beside(resident.run))
            _watch(cato, residents, random.Random(seed), report, time.monotonic() + 60 * minutes, max_actions)
        started = time.monotonic()
        for _ in range(2):
            wait_for(lambda: memory_actions.is_done(cato) and is_settled(cato), "all work", SETTLED_WITHIN, 0.5)
        report.settled_after = time.monotonic() - started
        report.actions = sum((resident.done for resident in residents), Counter())
        report.statuses = sum((resident.statuses for resident in residents), Counter())
        report.drift = count_drift(cato)
        report.exceptions = _logged_exceptions(cato)
        report.violations = violations(cato, report.posts.messages)
        stored = [one for resident in residents for one in resident.stored]
        report.violations += memory_actions.violations(cato, stored)
    report.violations += _judge_growth(report, minutes)
    return report


def _move_in(cato: Cato, count: int, seed: int, posts: Posts) -> list[Resident]:
    administrator = cato.set_up()
    people = [cato.join(administrator, f"Person{number} Soak") for number in range(count)]
    team = make_group(cato, administrator, *people)
    return [_resident(person, team, random.Random(f"{seed} {person.name}"), posts) for person in people]


def _resident(person: Client, team: str, dice: random.Random, posts: Posts) -> Resident:
    headers = {"Authorization": f"Bearer {person.create_token('read', 'write', 'ask')}"}
    clients = [httpx.Client(base_url=person.url, timeout=30, headers=headers)]
    return Resident(clients, dice, page=person, team=team, posts=posts)


def _watch(
    cato: Cato, residents: list[Resident], dice: random.Random, report: SoakReport, end: float, max_actions: int
) -> None:
    """Take samples, and let something fail at intervals, until the time or the actions end."""
    next_fault = time.monotonic() + dice.uniform(60, 120)
    ended = threading.Event()
    while time.monotonic() < end and sum(one.done.total() for one in residents) < max_actions:
        ended.wait(_SAMPLES_EVERY)
        report.growth.sample({"supervisor": cato.processes[0].popen.pid} | _ids(cato))
        for name, seconds in seconds_overdue(cato).items():
            report.overdue[name] = max(report.overdue.get(name, 0.0), seconds)
        if time.monotonic() > next_fault:
            report.faults[_fail(cato, dice)] += 1
            next_fault = time.monotonic() + dice.uniform(60, 120)


def _ids(cato: Cato) -> dict[str, int]:
    return {name: process.pid for name, process in processes(cato).items()}


def _fail(cato: Cato, dice: random.Random) -> str:
    """Let something fail; return what."""
    fault, name = dice.choice(["kill", "pause", "pause", "empty"]), dice.choice(["chroma", "valkey", "web", "worker"])
    process_id = _ids(cato).get(name)
    if fault == "empty":
        note = json.loads((cato.home / "data" / "serve.json").read_text())
        with redis.Redis.from_url(note["redis_url"]) as server:
            server.flushall()
        return "empty Redis"
    if process_id is None:
        return "none"
    if fault == "kill":
        kill(process_id)
    else:
        os.kill(process_id, signal.SIGSTOP)
        time.sleep(_PAUSED)
        os.kill(process_id, signal.SIGCONT)
    return f"{fault} {name}"


def _logged_exceptions(cato: Cato) -> Counter[str]:
    return Counter(f"{kind} in {Path(path).name}:{line}" for path, line, kind in _EXCEPTION.findall(cato.logs()))


def _judge_growth(report: SoakReport, minutes: float) -> list[str]:
    wrong = [f"database and index differ {report.drift} times"] * bool(report.drift)
    wrong += [f"a row of {name} was due for {age:.0f} s" for name, age in report.overdue.items() if age > _MAX_OVERDUE]
    if minutes >= _JUDGED_FROM:
        growing = {name: slope for name, slope in report.growth.memory_slopes().items() if slope > _MAX_GROWTH}
        wrong += [f"{name} grows by {slope:.0f} MB/h" for name, slope in growing.items() if name != "chroma"]
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the results; return the exit code."""
    parser = command_parser("soak", __doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-actions", type=int, default=50_000)
    options = parser.parse_args(argv)
    print(f"python -m benchmarks.soak --minutes {options.minutes:g} --seed {options.seed}", flush=True)
    with workbench() as home:
        report = run(home, **vars(options))
    messages = report.posts.messages
    rows = [
        ("actions", format_counts(report.actions)),
        ("faults", format_counts(report.faults)),
        ("messages acknowledged", sum(message.is_acknowledged for message in messages)),
        ("never acknowledged", sum(not message.is_acknowledged for message in messages)),
        ("error pages", format_counts(report.statuses)),
        ("exceptions in the log", format_counts(report.exceptions)),
        ("oldest due jobs, s", ", ".join(f"{name} {age:.0f}" for name, age in report.overdue.items())),
        ("settled after, s", report.settled_after),
        ("differences between database and index", report.drift),
        ("violations", len(report.violations)),
    ]
    table(("what", "figure"), rows)
    table(
        ("process", "memory at the end, MB", "MB/h", "file handles, most", "handles/h", "starts"), report.growth.rows()
    )
    for violation in report.violations[:50]:
        print(violation)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())

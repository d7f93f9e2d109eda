"""Kill processes of a running Cato with SIGKILL while three people post messages, and check for lost or doubled data.

A fourth person adds notes, uploads documents, imports conversations and forgets (`benchmarks/memory_actions.py`).

    python -m benchmarks.kill [--kills 200] [--seed 1] [--max-pause 3]

The seed determines which process is killed when, but not what it is doing. With CATO_TEST_TOPOLOGY=services there are
two web processes and two workers, restarted here in place of a supervisor. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks import memory_actions
from benchmarks.bench import processes, workbench
from benchmarks.consistency import PostedMessage, TurnRow, is_settled, turns, vectors, violations
from benchmarks.figures import table
from benchmarks.memory_actions import MemoryActions
from cato_web.config import loader
from cato_web.supervisor.plan import build_plan
from tests.fake_endpoint import start as start_endpoint
from tests.server import Cato, Client, Process, kill, running, start, wait_for
from tests.topology import TOPOLOGY, clean_environment

KEY = "kill"
PEOPLE = ("Alice Owner", "Bob Team", "Charlie Other")
# Seconds. An answer is interrupted after 15 s without a heartbeat; the lease of a worker lasts 45 s.
SETTLED_WITHIN = 180.0


@dataclass
class Report:
    """Actions and results."""

    kills: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)  # processes that ended without being killed
    messages: list[PostedMessage] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)  # of responses that did not acknowledge
    max_outage: float = 0.0  # seconds until all web processes answered again
    settled_after: float = 0.0  # seconds from the last kill
    states: Counter[str] = field(default_factory=Counter)  # of turns, before any was resumed
    resumed: int = 0
    actions: Counter[str] = field(default_factory=Counter)  # acknowledged ones of the fourth person
    vectors: int = 0
    violations: list[str] = field(default_factory=list)


def run(home: Path, *, kills: int, seed: int, max_pause: float = 3.0) -> Report:
    """Kill `kills` times, at most `max_pause` seconds apart while people can post; then check the data."""
    report = Report()
    dice = random.Random(seed)
    with ExitStack() as stack:
        endpoint = stack.enter_context(start_endpoint())
        endpoint.script(KEY, tokens=30, token_delay=0.03)
        environment = {
            "OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": KEY, "CATO_CHAT_MESSAGES_PER_MINUTE": "100000", "CATO_CHAT_CONCURRENT_ANSWERS": "100000",
        }  # fmt: skip
        valkey = _start_valkey(home, stack, environment) if TOPOLOGY == "services" else None
        cato = stack.enter_context(running(home / "cato", **environment))
        cato.processes[:0] = [valkey] if valkey else []
        administrator = cato.set_up()
        people = [cato.join(administrator, name) for name in PEOPLE]
        stack.enter_context(_run_supervisor(cato, report))
        actions = _memory_actions(cato, administrator, seed)
        with _run_posters(cato, people, seed, report), _run_beside(actions.run):
            _kill_repeatedly(cato, dice, report, kills, max_pause)
        started = time.monotonic()
        # Twice: what is read or imported at the end is embedded after that.
        for _ in range(2):
            wait_for(lambda: memory_actions.is_done(cato), "everything to be read, imported and erased", SETTLED_WITHIN)
            wait_for(lambda: is_settled(cato), "everything to be answered, marked and remembered", SETTLED_WITHIN, 0.5)
        report.settled_after = time.monotonic() - started
        _judge(cato, people, report)
        report.violations += memory_actions.violations(cato, actions)
        report.actions = actions.counts()
        report.ended.update(re.findall(r"^(\w+) ended \((?!signal 9\))", cato.logs(), re.M))
    return report


def _start_valkey(home: Path, stack: ExitStack, environment: dict[str, str]) -> Process:
    """Start the Valkey that `serve` would start, so that it can be killed too, and set its address in `environment`."""
    home.mkdir(parents=True, exist_ok=True)
    plan = build_plan(loader.load(environ={"CATO_DATA_DIR": str(home), "CHROMA_URL": "http://127.0.0.1:1"}), home)
    assert plan.valkey is not None
    valkey = start(home, "valkey", list(plan.valkey.command), clean_environment())
    stack.callback(valkey.end)
    environment["REDIS_URL"] = plan.redis_url
    return valkey


def _kill_repeatedly(cato: Cato, dice: random.Random, report: Report, kills: int, max_pause: float) -> None:
    for _ in range(kills):
        started = time.monotonic()
        wait_for(lambda: _all_answer(cato), "the pages to be back", 60)
        report.max_outage = max(report.max_outage, time.monotonic() - started)
        time.sleep(dice.uniform(0.1, max_pause))
        children = processes(cato)
        name = dice.choice(sorted(children))
        kill(children[name].pid)
        report.kills[name.rstrip("12")] += 1


@contextmanager
def _run_supervisor(cato: Cato, report: Report) -> Iterator[None]:
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


@contextmanager
def _run_posters(cato: Cato, people: list[Client], seed: int, report: Report) -> Iterator[None]:
    """Let everybody post messages while the block runs."""
    ending = threading.Event()
    posters = []
    for person in people:
        clients = [cato.sign_in(person, url) for url in cato.urls]
        secret = _open_secret(cato, person, report)
        dice = random.Random(f"{seed} {person.name}")
        posters.append(threading.Thread(target=_post_messages, args=(clients, secret, dice, report, ending)))
    for poster in posters:
        poster.start()
    try:
        yield
    finally:
        ending.set()
        for poster in posters:
            poster.join()


def _memory_actions(cato: Cato, administrator: Client, seed: int) -> MemoryActions:
    person = cato.join(administrator, "Dora Archive")
    headers = {"Authorization": f"Bearer {person.create_token('read', 'write')}"}
    clients = [httpx.Client(base_url=url, timeout=30, headers=headers) for url in cato.urls]
    return MemoryActions(clients, random.Random(f"{seed} memory"))


@contextmanager
def _run_beside(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `act` in a thread, and set its event when the block ends; raise its error, if any."""
    ending = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(act, ending)
        try:
            yield
        finally:
            ending.set()
        running.result()


def _open_secret(cato: Cato, person: Client, report: Report) -> str:
    """Create a thread that is not remembered after its first message; return its id."""
    first = PostedMessage(f"{person.name} opens a thread that is not remembered from now on", sent=1)
    first.thread = person.send_message(first.message, key=first.key)
    report.messages.append(first)
    wait_for(lambda: is_settled(cato), "the first answer")
    person.post(f"/t/{first.thread}/remember?to=no")
    return first.thread


def _post_messages(
    clients: list[Client], secret: str, dice: random.Random, report: Report, ending: threading.Event
) -> None:
    """Post messages in new, old and secret threads without waiting for the answers."""
    name = clients[0].name
    threads: list[str] = []
    number = 0
    while not ending.wait(dice.uniform(0.3, 1.2)):
        number += 1
        thread = dice.choice([None, secret, *threads[-3:]])
        message = PostedMessage(
            f"{name} says {number}: {dice.getrandbits(64):x}", is_secret=thread == secret, wanted=thread
        )
        report.messages.append(message)
        _send(clients, dice, message, report)
        if thread is None and message.thread:
            threads.append(message.thread)


def _send(clients: list[Client], dice: random.Random, message: PostedMessage, report: Report) -> None:
    """Post it like a page, with the same key until it is acknowledged."""
    end = time.monotonic() + 60
    while not message.is_acknowledged and time.monotonic() < end:
        message.sent += 1
        path = f"/t/{message.wanted}/say" if message.wanted else "/"
        try:
            answer = dice.choice(clients).post(path, {"message": message.message, "client_key": message.key})
        except httpx.TransportError:
            time.sleep(0.2)
            continue
        if answer.status_code == 302 and (found := re.search(r"/t/([0-9a-f-]{36})", answer.headers["location"])):
            message.thread = found[1]
        else:
            report.statuses[answer.status_code] += 1
            time.sleep(0.2)


def _judge(cato: Cato, people: list[Client], report: Report) -> None:
    """Find violations, resume every interrupted answer, and check again."""
    report.violations = violations(cato, report.messages)
    before = {row.id: row for row in turns(cato)}
    report.states.update(row.state for row in before.values())
    interrupted = [row for row in before.values() if row.state == "interrupted"]
    owners = {
        message.key: person
        for person in people
        for message in report.messages
        if message.message.startswith(person.name)
    }
    for row in interrupted:
        _resume(cato, owners[str(uuid.UUID(row.key))], row)
    wait_for(lambda: is_settled(cato), "the resumed answers", SETTLED_WITHIN)
    after = {row.id: row for row in turns(cato)}
    for row in interrupted:
        now = after[row.id]
        if now.state == "complete" and now.answer.startswith(row.answer) and row.exchange in (None, now.exchange):
            report.resumed += 1
        else:
            report.violations.append(
                f"the answer to {row.message!r} was resumed and is now {now.state}: {now.answer[:80]!r}"
            )
    report.violations += violations(cato, report.messages)
    report.vectors = vectors(cato).total()


def _resume(cato: Cato, person: Client, row: TurnRow) -> None:
    action = "resume" if row.answer.strip() else "retry"
    path = f"/t/{uuid.UUID(row.thread)}/turns/{uuid.UUID(row.id)}/{action}"
    wait_for(lambda: person.post(path, htmx=True).status_code == 204, f"{row.message!r} to be resumed")


def _all_answer(cato: Cato) -> bool:
    return all(httpx.get(f"{url}/healthz", timeout=2).status_code == 200 for url in cato.urls)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the results; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kill", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-pause", type=float, default=3.0, help="seconds between two kills")
    options = parser.parse_args(argv)
    with workbench() as home:
        report = run(home, kills=options.kills, seed=options.seed, max_pause=options.max_pause)
    resent = sum(message.sent > 1 for message in report.messages)
    rows = [
        ("topology, seed", f"{TOPOLOGY}, {options.seed}"),
        ("kills", ", ".join(f"{name} {count}" for name, count in report.kills.most_common())),
        (
            "ended by themselves",
            ", ".join(f"{name} {count}" for name, count in report.ended.items() if count) or "none",
        ),
        ("messages acknowledged", sum(message.is_acknowledged for message in report.messages)),
        ("never acknowledged", sum(not message.is_acknowledged for message in report.messages)),
        ("sent more than once", resent),
        ("answers that did not acknowledge", ", ".join(f"HTTP {s}: {n}" for s, n in report.statuses.items()) or "none"),
        ("turns", ", ".join(f"{state} {count}" for state, count in report.states.most_common())),
        ("interrupted, then resumed", report.resumed),
        ("of the fourth person", ", ".join(f"{kind} {count}" for kind, count in report.actions.most_common())),
        ("vectors in the index", report.vectors),
        ("longest wait for all pages after a kill, s", report.max_outage),
        ("settled after the last kill, s", report.settled_after),
        ("violations", len(report.violations)),
    ]
    table(("what", "figure"), rows)
    for violation in report.violations[:50]:
        print(violation)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())

"""Let the disk, the clock, Redis, Chroma or PostgreSQL fail while everybody uses Cato, and check for lost or doubled data.

    python -m benchmarks.faults [disk] [clock] [redis] [chroma] [postgres] [--seed 1]

`disk` mounts a small file system and needs root, `clock` needs libfaketime, and `postgres` runs with
CATO_TEST_TOPOLOGY=services only, on a cluster of its own. The others run with `serve`. Exit code 1 if a check fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import redis

from benchmarks.bench import processes, start_valkey, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.scenario import Report, act, model, settle_and_judge
from tests import deployment
from tests.server import Cato, kill, running
from tests.topology import TOPOLOGY

_DISK = "600m"
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
_AT_WORK = 20.0  # seconds of use before, between and after faults

Fault = Callable[[Path], AbstractContextManager[tuple[dict[str, str], Callable[[Cato], None]]]]


@contextmanager
def full_disk(home: Path) -> Iterator[tuple[dict[str, str], Callable[[Cato], None]]]:
    """Fill the file system of the data directory three times, for 15 seconds each."""
    data = home / "cato" / "data"
    data.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=700", "none", str(data)], check=True)
    filler = data / "filler"

    def fill(_cato: Cato) -> None:
        for _ in range(3):
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(2**20))
            time.sleep(15)
            filler.unlink()
            time.sleep(_AT_WORK)

    try:
        yield {}, fill
    finally:
        subprocess.run(["umount", "--lazy", str(data)], check=True)


@contextmanager
def jumping_clock(home: Path) -> Iterator[tuple[dict[str, str], Callable[[Cato], None]]]:
    """Set the clock of all processes an hour forward, as after a pause of the machine, and then back by a minute."""
    if not _FAKETIME.exists():
        raise SystemExit(f"Install libfaketime; {_FAKETIME} is missing.")
    home.mkdir(parents=True)
    clock = home / "clock"
    clock.write_text("+0\n")

    def jump(_cato: Cato) -> None:
        for offset in ("+3600", "+3540"):
            clock.write_text(f"{offset}\n")
            time.sleep(_AT_WORK)

    environment = {"LD_PRELOAD": str(_FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    yield environment | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}, jump


@contextmanager
def emptied_redis(_home: Path) -> Iterator[tuple[dict[str, str], Callable[[Cato], None]]]:
    """Empty Redis 20 times while answers are in progress."""

    def empty(cato: Cato) -> None:
        note = json.loads((cato.home / "data" / "serve.json").read_text())
        with redis.Redis.from_url(note["redis_url"]) as server:
            for _ in range(20):
                server.flushall()
                time.sleep(1)

    yield {}, empty


@contextmanager
def older_index(_home: Path) -> Iterator[tuple[dict[str, str], Callable[[Cato], None]]]:
    """Replace the files of Chroma by an older copy, then run `reconcile`."""

    def replace(cato: Cato) -> None:
        files, copy = cato.home / "data" / "vectordb", cato.home / "older"
        server = processes(cato)["chroma"].pid
        os.kill(server, signal.SIGSTOP)
        shutil.copytree(files, copy)
        os.kill(server, signal.SIGCONT)
        time.sleep(2 * _AT_WORK)
        os.kill(server, signal.SIGSTOP)
        shutil.rmtree(files)
        shutil.copytree(copy, files)
        kill(server)
        time.sleep(_AT_WORK)
        print(cato.manage("reconcile", timeout=600).stdout)

    yield {}, replace


@contextmanager
def restarted_postgres(home: Path) -> Iterator[tuple[dict[str, str], Callable[[Cato], None]]]:
    """Restart PostgreSQL three times."""
    if TOPOLOGY != "services":
        raise SystemExit("Set CATO_TEST_TOPOLOGY=services.")
    with deployment.postgres() as (database, control), start_valkey(home) as valkey:

        def restart(_cato: Cato) -> None:
            for _ in range(3):
                control("restart")
                time.sleep(_AT_WORK)

        yield {"DATABASE_URL": database, "REDIS_URL": valkey.environment["REDIS_URL"]}, restart


FAULTS: dict[str, Fault] = {
    "disk": full_disk,
    "clock": jumping_clock,
    "redis": emptied_redis,
    "chroma": older_index,
    "postgres": restarted_postgres,
}


def run(home: Path, fault: Fault, *, seed: int) -> Report:
    """Let everybody act before, during and after the fault; then check the data."""
    report = Report()
    with ExitStack() as stack:
        environment, disturb = stack.enter_context(fault(home))
        environment |= stack.enter_context(model())
        cato = stack.enter_context(running(home / "cato", **environment))
        with act(cato, cato.set_up(), seed, report) as actors:
            time.sleep(_AT_WORK)
            disturb(cato)
            time.sleep(_AT_WORK)
        settle_and_judge(cato, actors, report)
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """Run the faults one after the other and print the results; return the exit code."""
    parser = command_parser("faults", __doc__)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []], help="all but postgres by default")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    reports = dict[str, Report]()
    with workbench() as home:
        for name in options.faults or [name for name in FAULTS if name != "postgres"]:
            print(f"{TOPOLOGY}: python -m benchmarks.faults {name} --seed {options.seed}", flush=True)
            reports[name] = report = run(home / name, FAULTS[name], seed=options.seed)
            table(("what", name), report.rows())
            for violation in report.violations[:50]:
                print(violation, flush=True)
    return 1 if any(report.violations for report in reports.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

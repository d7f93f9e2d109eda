"""Backups: resources of backup and restore, and whether backups made while everybody uses Cato restore completely.

    python -m benchmarks.backup [--exchanges 10000] [--backups 3] [--seed 1]

Exit code 1 if a check of a restored backup fails. The store whose resources are measured is filled by
benchmarks/synthetic_store.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import memory_actions
from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.consistency import is_settled, violations
from benchmarks.figures import table
from benchmarks.footprint import run_in_process
from benchmarks.scenario import SETTLED_WITHIN, Actors, Report, act, model, settle_and_judge
from tests.server import ROOT, Cato, Client, running, wait_for
from tests.topology import clean_environment

_AT_WORK = 20.0  # seconds of use before each backup
_QUERIES = ("Document", "Imported question", "Note", "says", "decision", "Where is the battery?")
# Resources of a command, measured in a process without other children.
_MEASURED = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss // 1024]))
"""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup, and what had been acknowledged when it began."""

    path: Path
    messages: frozenset[str]  # keys
    stored: frozenset[str]  # ids
    deleted: frozenset[str]  # ids


def resources(home: Path, exchanges: int) -> list[tuple[object, ...]]:
    """Return a row of each command: CPU seconds, MB of memory, and the size of the backup relative to the database."""
    with running(home / "full") as cato:
        cato.set_up()
        worker = processes(cato)["worker"]
        worker.suspend()  # it would embed exchanges that get synthetic vectors
        run_in_process(cato, "grow", str(exchanges), "1")
        worker.resume()
    archive = home / "full.tar.gz"
    rows = [
        (name, *_resources_of(home / folder, *arguments))
        for name, folder, arguments in (
            ("start of any command", "full", ("showmigrations", "people")),
            ("backup", "full", ("backup", str(archive))),
            ("restore --index-later", "restored", ("restore", "--index-later", str(archive))),
        )
    ]
    size = (home / "full" / "data" / "cato.sqlite3").stat().st_size
    print(f"database {size / 1e6:.1f} MB, backup {archive.stat().st_size / size:.2f} of that")
    return rows


def _resources_of(home: Path, *arguments: str) -> list[float]:
    command = [sys.executable, "-c", _MEASURED, sys.executable, "manage.py", *arguments]
    result = subprocess.run(command, cwd=ROOT, env=_environment(home), check=True, stdout=subprocess.PIPE)
    figures: list[float] = json.loads(result.stdout)
    return figures


def _environment(home: Path) -> dict[str, str]:
    return clean_environment() | {"CATO_DATA_DIR": str(home / "data"), "CATO_CONFIG_FILE": ""}


def under_load(home: Path, *, backups: int, seed: int) -> list[tuple[object, ...]]:
    """Make backups while everybody acts and one afterwards; return a row of each when it was restored."""
    report = Report()
    with model() as environment:
        with running(home / "cato", **environment) as cato:
            administrator = cato.set_up()
            with act(cato, administrator, seed, report) as actors:
                taken = [_back_up(cato, home / f"{number}.tar.gz", actors, report) for number in range(backups)]
            settle_and_judge(cato, actors, report)
            assert not report.violations, report.violations
            quiet = home / "quiet.tar.gz"
            cato.manage("backup", str(quiet), timeout=600)
            expected = _look(cato, administrator)
        rows: list[tuple[object, ...]] = []
        for number, backup in enumerate(taken):
            with _restored(home / f"restored-{number}", backup.path, environment) as cato:
                wrong = _violations(cato, backup, actors, report)
                rows.append((f"under load, {number + 1}", len(backup.messages), len(backup.stored), len(wrong)))
            for violation in wrong[:50]:
                print(violation, flush=True)
        with _restored(home / "restored-quiet", quiet, environment) as cato:
            found = _look(cato, cato.sign_in(administrator))
            differences = [name for name, figure in expected.items() if found[name] != figure]
            rows.append(("afterwards", expected["turns"], expected["exchanges"], len(differences)))
            for name in differences:
                print(f"{name}: {expected[name]} and {found[name]}", flush=True)
    return rows


def _back_up(cato: Cato, path: Path, actors: Actors, report: Report) -> Backup:
    time.sleep(_AT_WORK)
    stored = [*actors.memory.stored, *actors.team.stored]
    backup = Backup(
        path,
        frozenset(message.key for message in report.posts.messages if message.is_acknowledged),
        frozenset(one.id for one in stored if one.id),
        frozenset(one.id for one in stored if one.id and one.is_deleted),
    )
    cato.manage("backup", str(path), timeout=600)
    return backup


@contextmanager
def _restored(home: Path, archive: Path, environment: dict[str, str]) -> Iterator[Cato]:
    """Restore this backup below `home`, and run it until nothing is under way."""
    command = [sys.executable, "manage.py", "restore", str(archive)]
    subprocess.run(command, cwd=ROOT, env=_environment(home) | environment, check=True, stdout=subprocess.DEVNULL)
    with running(home, **environment) as cato:
        for _ in range(2):  # what is read or imported at the end is embedded after that
            wait_for(lambda: memory_actions.is_done(cato) and is_settled(cato), "it to settle", SETTLED_WITHIN, 0.5)
        yield cato


def _violations(cato: Cato, backup: Backup, actors: Actors, report: Report) -> list[str]:
    """Return what is wrong in a restored backup: what came after its beginning may be there or not."""
    messages = [
        message if message.key in backup.messages else replace(message, thread=None)
        for message in report.posts.messages
    ]
    stored = [
        replace(one, id=one.id if one.id in backup.stored else None, is_deleted=one.id in backup.deleted)
        for one in (*actors.memory.stored, *actors.team.stored)
    ]
    return [*violations(cato, messages), *memory_actions.violations(cato, stored)]


def _look(cato: Cato, person: Client) -> dict[str, object]:
    """Return what a restored Cato must have: the number of rows, and what searches find."""
    tables = {
        "turns": "chat_turn", "threads": "chat_thread", "exchanges": "memory_exchange", "documents": "memory_document",
        "statements": "memory_statement", "spaces": "memory_space",
    }  # fmt: skip
    counts = {name: cato.sql(f"SELECT count(*) FROM {table}")[0][0] for name, table in tables.items()}
    hits = {
        query: re.findall(r'<li class="search-hit">.*?</li>', person.search_page(query), re.S) for query in _QUERIES
    }
    assert all(hits.values()), hits
    return counts | hits


def main() -> int:
    """Print both tables; return the exit code."""
    parser = command_parser("backup", __doc__)
    parser.add_argument("--exchanges", type=int, default=10_000, help="in the store whose resources are measured")
    parser.add_argument("--backups", type=int, default=3, help="made while everybody uses Cato")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with workbench() as home:
        rows = under_load(home / "load", backups=options.backups, seed=options.seed)
        table(("backup", "messages acknowledged before", "notes, documents and imports", "violations"), rows)
        table(("command", "CPU s", "memory, MB"), resources(home / "size", options.exchanges))
    return int(any(row[-1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Erasing one exchange in a large store: duration, memory, and the effect on concurrent searches.

    python -m benchmarks.erase [--exchanges 10000 100000]

Cato runs as with `make run`, filled by benchmarks/synthetic_store.py. One exchange of the largest collection is deleted
on its page, then `erase` copies that collection, rewrites the database and has Chroma's files purged, while one person
searches four times a second. Fails if a file still contains deleted data.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import uuid
from pathlib import Path

import psutil

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.footprint import run_in_process
from tests.server import ROOT, Cato, Client, running, wait_for

PAUSE = 0.25
MB = 1024 * 1024
LEXICAL_ONLY = "found by words alone"
LARGEST = """
SELECT e.id, e.user_message FROM memory_exchange e JOIN memory_embeddingjob m ON m.exchange_id = e.id
WHERE m.collection_id = (SELECT collection_id FROM memory_embeddingjob GROUP BY collection_id ORDER BY COUNT(*) DESC LIMIT 1) LIMIT 1
"""


def main() -> None:
    """Measure each size, and print one table."""
    parser = command_parser("erase", __doc__)
    parser.add_argument("--exchanges", type=int, nargs="+", default=[10_000, 100_000])
    rows = [(exchanges, *measure(exchanges).values()) for exchanges in parser.parse_args().exchanges]
    head = ("exchanges", "disk before, MB", "after", "`erase`, s", "its peak, MB", "Chroma's peak, MB")
    table((*head, "searches", "by words alone", "failed", "median, ms", "slowest, ms"), rows)


def measure(exchanges: int) -> dict[str, float]:
    """Fill, delete, and erase during searches."""
    with workbench() as folder, running(folder) as cato:
        person = cato.set_up()
        worker = processes(cato)["worker"]
        worker.suspend()  # it would embed exchanges that get synthetic vectors
        questions = json.loads(run_in_process(cato, "grow", str(exchanges), "1"))
        worker.resume()
        [(id, message)] = cato.sql(LARGEST)
        person.post(f"/m/{uuid.UUID(id)}/forget")
        erased = "SELECT 1 FROM memory_exchange WHERE id = ? AND erased_at IS NOT NULL"
        wait_for(lambda: cato.sql(erased, id), "its text and vectors to be removed", seconds=60)
        files = Path(cato.environment["CATO_DATA_DIR"])
        before = _size(files)
        figures = _erase(cato, person, questions)
        holding = [path.name for path in files.rglob("*") if path.is_file() and message.encode() in path.read_bytes()]
        if holding:
            sys.exit(f"What was deleted is still in {holding}.")
        return {"before": before, "after": _size(files)} | figures


def _erase(cato: Cato, person: Client, questions: list[str]) -> dict[str, float]:
    """Run `erase` to its end, and search meanwhile."""
    memory: dict[str, float] = {"erase": 0.0, "chroma": 0.0}
    took: list[float] = []
    degraded = failed = 0
    started = time.monotonic()
    command = psutil.Popen([sys.executable, "manage.py", "erase"], cwd=ROOT, env=cato.environment)
    while command.poll() is None:
        requested = time.monotonic()
        answer = person.get("/search", params={"q": questions[len(took) % len(questions)]})
        took.append(1000 * (time.monotonic() - requested))
        failed += answer.status_code != 200
        degraded += LEXICAL_ONLY in answer.text
        memory["erase"] = max(memory["erase"], _resident(command))
        memory["chroma"] = max(memory["chroma"], _resident(processes(cato).get("chroma")))
        time.sleep(PAUSE)
    seconds = time.monotonic() - started
    if command.returncode:
        sys.exit(f"`erase` ended with {command.returncode}.")
    return {
        "seconds": seconds,
        **memory,
        "searches": len(took),
        "by words": degraded,
        "failed": failed,
        "median": statistics.median(took),
        "slowest": max(took),
    }


def _resident(process: psutil.Process | None) -> float:
    """Return the megabytes that a process and its children use; 0 if it has just ended."""
    try:
        family = [] if process is None else [process, *process.children(recursive=True)]
        return float(sum(one.memory_info().rss for one in family) / MB)
    except psutil.NoSuchProcess:
        return 0.0


def _size(files: Path) -> float:
    """Return the megabytes of all files in the folder."""
    return sum(path.stat().st_size for path in files.rglob("*") if path.is_file()) / MB


if __name__ == "__main__":
    main()

"""Server time of the pages of a large organisation, compared with the same pages of 200 exchanges.

    python -m benchmarks.organisation [--exchanges 1000000] [--people 500] [--home FOLDER] [--database URL]

The store is filled by benchmarks/organisation_store.py, and kept in `--home` for another run. It is in SQLite or, with
`--database`, in an empty database of PostgreSQL. One person, an administrator, reads the pages; a tenth of the exchanges are
their own.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import uuid
from pathlib import Path

import httpx

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.footprint import run_in_process
from tests.server import Cato, Client, running

_TIMES = 20
_WARM_UP = 2
# Paths by page; {thread} is a thread of the person, {words} are words of a stored text.
PAGES = {
    "an empty page": "/",
    "a thread": "/t/{thread}",
    "all threads": "/threads",
    "find": "/find?q={words}",
    "search": "/search?q={words}",
    "search by a filter alone": "/search?since=2026-01-01",
    "mentions": "/mentions",
    "documents": "/documents",
    "notes": "/notes",
    "knowledge": "/knowledge",
    "statistics": "/stats",
    "exchanges": "/admin/exchanges",
    "exchanges with three words": "/admin/exchanges?q={words}",
    "documents of all": "/admin/documents",
    "people": "/admin/people",
    "jobs": "/admin/jobs",
    "usage": "/admin/usage",
    "audit": "/admin/audit",
    "readiness": "/readyz",
    "metrics": "/metrics",
}


def server_times(person: Client, path: str, thread: str, questions: list[str]) -> list[float]:
    """Return the milliseconds of each response; each has another question."""
    took = []
    for question in questions[: _WARM_UP + _TIMES]:
        address = path.format(thread=thread, words=" ".join(question.rstrip("?").split()[5:8]))
        started = time.monotonic()
        response = person.get(address, headers={"HX-Request": str(address.startswith("/find")).lower()}, timeout=120)
        took.append(1000 * (time.monotonic() - started))
        assert response.status_code == 200, f"{address}: {response.status_code}"
    return took[_WARM_UP:]


def measure(home: Path, exchanges: int, people: int, **environment: str) -> dict[str, list[float]]:
    """Fill the Cato in this folder unless it is filled, and return the milliseconds of each page."""
    known = home / "organisation.json"
    if not known.exists():
        with running(home, **environment) as cato:
            person = cato.set_up()
            questions = json.loads(run_in_process(cato, str(exchanges), str(people), module="organisation_store"))
        known.write_text(json.dumps({"email": person.email, "questions": questions}))
        print(f"{exchanges:,} exchanges are stored; load {os.getloadavg()[0]:.1f}", flush=True)
    found = json.loads(known.read_text())
    with running(home, **environment) as cato:
        person = cato.sign_in(Client(cato.url, "", found["email"], httpx.Client()))
        thread = _newest_thread(cato, person.email)
        return {name: server_times(person, path, thread, found["questions"]) for name, path in PAGES.items()}


def _newest_thread(cato: Cato, email: str) -> str:
    rows = cato.sql(
        "SELECT t.id FROM chat_thread t JOIN people_user u ON u.id = t.owner_id WHERE u.email = ?"
        " ORDER BY t.last_message_at DESC LIMIT 1",
        email,
    )
    return str(uuid.UUID(str(rows[0][0])))


def main() -> None:
    """Measure both and print the table."""
    parser = command_parser("organisation", __doc__)
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--home", type=Path, help="where the filled store is kept; else it is deleted")
    parser.add_argument("--database", help="URL of the PostgreSQL database of the large store")
    options = parser.parse_args()
    environment = {"DATABASE_URL": options.database} if options.database else {}
    with workbench() as folder:
        empty = measure(folder / "empty", 200, 1)
        full = measure(options.home or folder / "full", options.exchanges, options.people, **environment)
    rows = [
        (name, statistics.median(empty[name]), statistics.median(full[name]), percentile(full[name], 0.95))
        for name in PAGES
    ]
    table(("page", "200 exchanges, ms", f"{options.exchanges:,}, ms", "p95, ms"), rows)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

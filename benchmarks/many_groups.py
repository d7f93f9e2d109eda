"""Server time of pages and searches for people in no, 50 and 200 groups of one Cato.

    python -m benchmarks.many_groups [--groups 0 50 200]

Each group has two exchanges. The people have no threads of their own.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from benchmarks.consistency import is_settled
from benchmarks.figures import table
from tests.groups import make_group
from tests.server import Cato, Client, running, wait_for

_TIMES = 20
_WARM_UP = 2
_INDEXED_WITHIN = 1800.0  # seconds
PAGES = {
    "an empty page": "/",
    "all threads": "/threads",
    "search": "/search?q=lamp+{number}",
    "search by date": "/search?since=2020-01-01",
    "knowledge": "/knowledge",
    "instructions": "/instructions",
    "search through the API": "/api/search?q=lamp+{number}",
}


def fill(cato: Cato, administrator: Client, people: dict[int, Client]) -> None:
    """Put each person into so many groups, each with two exchanges, and wait until these are indexed."""
    api = administrator.api_client("read", "write")
    for number in range(max(people)):
        group = make_group(cato, administrator, *(person for count, person in people.items() if number < count))
        texts = (f"The lamp {number} is green.", f"The pump {number} is behind the barn.")
        answer = api.post("/api/exchanges/batch", json={"exchanges": [{"text": one, "space": group} for one in texts]})
        assert answer.status_code == 201, answer.text
    wait_for(lambda: is_settled(cato), "all exchanges to be indexed", _INDEXED_WITHIN)


def median_time(browser: Client | httpx.Client, path: str) -> float:
    """Return the median milliseconds of responses to requests one after another."""
    took = []
    for number in range(_WARM_UP + _TIMES):
        started = time.monotonic()
        response = browser.get(path.format(number=number), timeout=60)
        took.append(1000 * (time.monotonic() - started))
        assert response.status_code == 200, f"{path}: {response.status_code}"
    return statistics.median(took[_WARM_UP:])


def measure(home: Path, groups: Sequence[int]) -> list[tuple[object, ...]]:
    """Return a row for each page, with a figure for each number of groups."""
    with running(home, CATO_API_REQUESTS_PER_MINUTE="100000", CATO_VECTOR_STORE_SEARCHES_PER_MINUTE="100000") as cato:
        administrator = cato.set_up()
        people = {count: cato.join(administrator, f"Person in {count}") for count in groups}
        fill(cato, administrator, people)
        programs = {count: person.api_client("read") for count, person in people.items()}
        return [
            (name, *(median_time((programs if "/api/" in path else people)[count], path) for count in groups))
            for name, path in PAGES.items()
        ]


def main() -> None:
    """Print the table."""
    parser = command_parser("many_groups", __doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=[0, 50, 200])
    options = parser.parse_args()
    with workbench() as home:
        rows = measure(home, options.groups)
    table(("page, ms", *(f"in {count} groups" for count in options.groups)), rows)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

"""A large import beside conversations: rates, the remaining time that the page shows, and the delay of answers.

    python -m benchmarks.importing [--exchanges 100000] [--minutes 10]

One person uploads a file with conversations of ten turns on the page Import, and posts messages in another thread before,
while the file is read, and while its messages are embedded, for at most `--minutes` of embedding. The endpoint answers at
once.
"""

from __future__ import annotations

import asyncio
import html
import io
import json
import os
import re
import statistics
import time
import zipfile
from datetime import UTC, datetime, timedelta

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.load import StreamEndpoint, Visitor
from benchmarks.message import later_messages
from benchmarks.pages import conversation
from tests.server import Cato, Client, running, wait_for

_TURNS = 10
_BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
_MESSAGES = 30  # in each phase


def archive(exchanges: int) -> bytes:
    """Return a file with as many exchanges, in conversations of ten turns."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(exchanges // _TURNS):
            thread = conversation(f"Thread {number}", _TURNS, _BEGAN + timedelta(hours=number), is_remembered=True)
            packed.writestr(f"threads/{number}.json", json.dumps(thread))
    return file.getvalue()


class Import:
    """An import of a person, as its page shows it."""

    def __init__(self, person: Client, data: bytes) -> None:
        self._person = person
        answer = person.post("/import", files={"file": ("export.zip", data, "application/zip")})
        assert answer.status_code == 302, answer.text[:500]

    @property
    def text(self) -> str:
        """The lines of the page about the import."""
        page = self._person.get("/import").text
        (section,) = re.findall(r'<section class="card task--import".*?</section>', page, re.DOTALL)
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", section)).split())


async def _delays(endpoint: StreamEndpoint, visitor: Visitor) -> list[float]:
    async with endpoint.serve():
        return [1000 * seconds for seconds in await later_messages(visitor, _MESSAGES)]


def _embedded(cato: Cato) -> int:
    ((count,),) = cato.sql(
        "SELECT count(*) FROM memory_embeddingjob j JOIN memory_exchange e ON e.id = j.exchange_id"
        " WHERE j.state = 'done' AND e.source = 'import'"
    )
    return int(count)


def _stored(cato: Cato) -> int:
    return int(cato.sql("SELECT count(*) FROM memory_exchange WHERE source = 'import'")[0][0])


def measure(cato: Cato, person: Client, endpoint: StreamEndpoint, exchanges: int, minutes: float) -> None:
    """Import, and print the tables."""
    rows: list[tuple[object, ...]] = []
    shown: list[tuple[object, ...]] = []

    def row(phase: str, usual: float | None) -> float:
        delays = asyncio.run(_delays(endpoint, Visitor(person)))
        median = statistics.median(delays)
        rows.append((phase, median, percentile(delays, 0.95), median / (usual or median)))
        return median

    usual = row("before", None)
    data = archive(exchanges)
    began = time.monotonic()
    job = Import(person, data)
    wait_for(lambda: _stored(cato) > 100, "the first conversations", 300)
    row("while the file is read", usual)
    while re.search(r" of [\d,]+ conversations", job.text):
        shown.append((f"{time.monotonic() - began:.0f} s", _stored(cato), job.text[:160]))
        time.sleep(5)
    read_after, embedded_before, embedding_since = time.monotonic() - began, _embedded(cato), time.monotonic()
    row("while it is embedded", usual)
    while time.monotonic() - embedding_since < 60 * minutes and _embedded(cato) < exchanges:
        shown.append((f"{time.monotonic() - began:.0f} s", _embedded(cato), job.text[:160]))
        time.sleep(60)
    rate = (_embedded(cato) - embedded_before) / (time.monotonic() - embedding_since)
    print(
        f"{len(data) / 1e6:.1f} MB; read in {read_after:.0f} s; {rate:.1f} exchanges embedded a second; load {os.getloadavg()[0]:.1f}"
    )
    table(("messages", "first token p50, ms", "p95, ms", "ratio"), rows)
    table(("after", "stored or embedded", "the page"), shown)


def main() -> None:
    """Start Cato and measure."""
    parser = command_parser("importing", __doc__)
    parser.add_argument("--exchanges", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=10, help="of embedding; all of it takes hours")
    options = parser.parse_args()
    endpoint = StreamEndpoint()
    with (
        workbench() as home,
        running(home / "cato", **endpoint.environment) as cato,
    ):
        measure(cato, cato.set_up(), endpoint, options.exchanges, options.minutes)


if __name__ == "__main__":
    main()

"""Cost of streaming: CPU, gaps between frames and memory of Cato, compared with bare relays in the same run.

    python -m benchmarks.streams [--streams 1 50 150] [--seconds 10] [--rate 30] [--relays aiohttp openai ...]
        [--web-processes 1]

Each stream is a thread with an open page and an answer of this many tokens a second. The serving process has core 0 to
itself; the endpoint and the pages, and Cato's other processes, share core 1. Several web processes share all cores with
them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import httpx
import psutil

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.consistency import is_settled, turns
from benchmarks.figures import percentile, table
from benchmarks.load import Page, StreamEndpoint, Usage, Visitor, open_page, pin
from tests.server import Cato, Client, running, start, wait_for
from tests.topology import clean_environment, free_port

SERVING_CORE, OTHER_CORE = 0, 1
RELAYS = ("aiohttp", "openai-aiohttp", "openai")
HEAD = (
    "streams", "server", "CPU s / 1,000 tokens", "x aiohttp", "other processes", "gap p50, ms", "gap p99, ms",
    "memory, MiB", "pages closed", "answers failed",
)  # fmt: skip


@dataclass
class Measurement:
    """Observations while all streams ran."""

    gaps: list[float]  # seconds between frames of a page
    cpu: float  # CPU seconds of the serving processes for 1,000 tokens
    other_cpu: float  # of the other processes
    memory: float  # MiB of the serving processes, at the end
    closed: int
    failed: int = 0


@dataclass
class Stage:
    """The processes to measure, and how a page with a running answer is opened."""

    servers: dict[str, psutil.Process]
    others: dict[str, psutil.Process] = field(default_factory=dict)

    async def measure(
        self, streams: Sequence[AbstractAsyncContextManager[Page]], seconds: float, rate: float
    ) -> Measurement:
        """Open all pages, wait until each receives tokens, and measure for `seconds`."""
        serving, other = Usage(self.servers), Usage(self.others)
        clock = asyncio.get_running_loop().time
        async with AsyncExitStack() as stack:
            pages = [await stack.enter_async_context(stream) for stream in streams]
            await asyncio.wait_for(asyncio.gather(*(page.first_token() for page in pages)), 120)
            await asyncio.sleep(1)
            started = clock()
            serving.begin()
            other.begin()
            await asyncio.sleep(seconds)
            ended = clock()
            times = [[at for at in page.frames if started <= at <= ended] for page in pages]
            thousands = len(pages) * rate * (ended - started) / 1000
            return Measurement(
                gaps=[after - before for page in times for before, after in pairwise(page)],
                cpu=sum(serving.spent().values()) / thousands,
                other_cpu=sum(other.spent().values()) / thousands,
                memory=sum(serving.memory().values()),
                closed=sum(page.is_closed for page in pages),
            )


async def with_cato(cato: Cato, person: Client, endpoint: StreamEndpoint, streams: int, seconds: float) -> Measurement:
    """Measure Cato, with each page on its own thread."""
    visitor, children = Visitor(person), processes(cato)
    web = {name: children.pop(name) for name in list(children) if name.startswith("web")}

    @asynccontextmanager
    async def stream(number: int) -> AsyncIterator[Page]:
        async with visitor.open(await visitor.post(f"Stream {number}")) as page:
            yield page

    async with endpoint.serve():
        measurement = await Stage(web, children).measure(
            [stream(number) for number in range(streams)], seconds, endpoint.rate
        )
        await _settle(cato)
    await visitor.close()
    return measurement


async def with_relay(home: Path, client: str, endpoint: StreamEndpoint, streams: int, seconds: float) -> Measurement:
    """Measure a bare relay."""
    async with running_relay(home, client, endpoint) as (server, url):
        pages = [open_page(url, "start") for _ in range(streams)]
        return await Stage({"relay": server}).measure(pages, seconds, endpoint.rate)


@asynccontextmanager
async def running_relay(home: Path, client: str, endpoint: StreamEndpoint) -> AsyncIterator[tuple[psutil.Process, str]]:
    """Run a bare relay on the serving core, and the endpoint; yield the relay and the address of its socket."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.relay", "--port", str(port), "--endpoint", endpoint.url]
    process = start(home, f"relay-{client}", [*command, "--client", client], clean_environment())
    try:
        wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/").status_code == 200, "the relay")
        server = psutil.Process(process.popen.pid)
        pin(server, SERVING_CORE)
        async with endpoint.serve():
            yield server, f"ws://127.0.0.1:{port}/"
    finally:
        process.end()


def pin_all(cato: Cato) -> None:
    """Give the web process the serving core, and this process and the others of Cato the other one."""
    pin(psutil.Process(), OTHER_CORE)
    for name, child in processes(cato).items():
        pin(child, SERVING_CORE if name.startswith("web") else OTHER_CORE)


async def _settle(cato: Cato) -> None:
    await asyncio.to_thread(wait_for, lambda: is_settled(cato), "the answers to end", 300)


def main() -> None:
    """Measure each number of streams on Cato and on the relays, and print the table."""
    parser = command_parser("streams", __doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 50, 150])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=30.0, help="tokens a second of each stream")
    parser.add_argument("--relays", nargs="*", choices=RELAYS, default=RELAYS)
    parser.add_argument("--web-processes", type=int, default=1)
    options = parser.parse_args()
    endpoint = StreamEndpoint(rate=options.rate)
    rows: list[tuple[object, ...]] = []
    with (
        workbench() as home,
        running(home / "cato", **endpoint.environment, CATO_SERVER_WEB_PROCESSES=str(options.web_processes)) as cato,
    ):
        person = cato.set_up()
        if options.web_processes == 1:
            pin_all(cato)
        failed_before = 0
        for streams in options.streams:
            # Starting many takes a while; the first must not end before the last was measured.
            endpoint.tokens = int(options.rate * (options.seconds + 5 + streams / 5))
            relays = {
                client: asyncio.run(with_relay(home, client, endpoint, streams, options.seconds))
                for client in options.relays
            }
            ours = asyncio.run(with_cato(cato, person, endpoint, streams, options.seconds))
            ours.failed = sum(row.state != "complete" for row in turns(cato)) - failed_before
            failed_before += ours.failed
            floor = relays["aiohttp"].cpu if "aiohttp" in relays else 0.0
            rows += [_row(streams, f"relay, {client}", relay, floor) for client, relay in relays.items()]
            rows.append(_row(streams, "Cato", ours, floor))
    table(HEAD, rows)


def _row(streams: int, server: str, found: Measurement, floor: float) -> tuple[object, ...]:
    return (
        streams,
        server,
        found.cpu,
        found.cpu / floor if floor else 0.0,
        found.other_cpu,
        1000 * percentile(found.gaps, 0.5),
        1000 * percentile(found.gaps, 0.99),
        found.memory,
        found.closed,
        found.failed,
    )


if __name__ == "__main__":
    main()

"""Cost of streaming: CPU seconds of the web process compared with a bare ASGI relay, and gaps between frames.

    python -m benchmarks.streams [--streams 1 50 200] [--seconds 10] [--rate 30]

Each stream is one thread with one open page and an answer of this many tokens a second. Pages, model endpoint, Cato's
four processes and the relay share this machine's cores. Only frames that arrive while all streams run are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.bench import processes, workbench
from benchmarks.consistency import is_settled, turns
from benchmarks.figures import percentile, table
from tests.fake_endpoint import FakeEndpoint
from tests.fake_endpoint import start as start_endpoint
from tests.server import Cato, Client, running, start, wait_for
from tests.topology import clean_environment, free_port

KEY = "streams"
PARAGRAPH = " ".join(f"word{n}" for n in range(40))


@dataclass
class Measurement:
    """Frame times and lengths of each page, and errors, while streams run."""

    pages: list[list[tuple[float, int]]] = field(default_factory=list)
    errors: int = 0
    cpu: float = 0.0  # CPU seconds of the serving process in the window
    started: float = 0.0
    ended: float = 0.0

    @property
    def frames(self) -> list[int]:
        """Return the lengths of all frames in the window."""
        return [size for page in self.pages for at, size in page if self.started <= at <= self.ended]

    @property
    def gaps(self) -> list[float]:
        """Return the seconds between a page's frames."""
        times = [[at for at, _ in page if self.started <= at <= self.ended] for page in self.pages]
        return [after - before for page in times for before, after in pairwise(page)]

    @property
    def cpu_of_1000(self) -> float:
        return 1000 * self.cpu / max(len(self.frames), 1)


async def measure(
    streams: int, seconds: float, server: psutil.Process, watch: Callable[[Measurement, int], asyncio.Task[None]]
) -> Measurement:
    """Open `streams` pages by `watch`, wait until all receive frames, and measure `server` for `seconds`."""
    measurement = Measurement(pages=[[] for _ in range(streams)])
    clock = asyncio.get_running_loop().time
    watching = [watch(measurement, number) for number in range(streams)]
    end = clock() + 60
    # An event per page would cost time that is measured.
    while any(len(page) < 3 for page in measurement.pages) and clock() < end and not measurement.errors:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    measurement.started, before = clock(), _cpu(server)
    await asyncio.sleep(seconds)
    measurement.ended, measurement.cpu = clock(), _cpu(server) - before
    measurement.errors += sum(task.done() for task in watching)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return measurement


async def with_cato(cato: Cato, person: Client, streams: int, seconds: float) -> Measurement:
    """Measure Cato, with each page on its own thread."""
    cookies = dict(person.http.cookies)
    headers = {"X-CSRFToken": cookies["cato_csrf"], "Referer": person.url}
    limiter = asyncio.Semaphore(8)
    async with httpx.AsyncClient(base_url=person.url, cookies=cookies, headers=headers, timeout=60) as http:

        async def page(measurement: Measurement, number: int) -> None:
            async with limiter:
                response = await http.post("/", data={"message": f"Stream {number}", "client_key": str(uuid.uuid4())})
            address = person.url.replace("http", "ws") + "/ws" + response.headers["location"].partition("#")[0]
            cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
            await _listen(measurement, number, address, json.dumps({"have": {}}), Cookie=cookie, Origin=person.url)

        return await measure(streams, seconds, processes(cato)["web"], lambda s, n: asyncio.create_task(page(s, n)))


async def with_relay(home: Path, like: Measurement, streams: int, seconds: float) -> Measurement:
    """Measure the bare relay, with frames as long and as frequent as those of `like`."""
    port = free_port()
    process = start(home, "relay", [sys.executable, "-m", "benchmarks.relay", "--port", str(port)], clean_environment())
    wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/").status_code == 200, "the relay")
    size = sum(like.frames) // max(len(like.frames), 1)
    interval = sum(like.gaps) / max(len(like.gaps), 1)
    hello = json.dumps({"bytes": size, "interval": interval})

    def page(measurement: Measurement, number: int) -> asyncio.Task[None]:
        return asyncio.create_task(_listen(measurement, number, f"ws://127.0.0.1:{port}/", hello))

    try:
        return await measure(streams, seconds, psutil.Process(process.popen.pid), page)
    finally:
        process.end()


async def _listen(measurement: Measurement, number: int, address: str, hello: str, **headers: str) -> None:
    clock = asyncio.get_running_loop().time
    try:
        async with connect(address, additional_headers=headers, proxy=None, compression=None, max_size=None) as socket:
            await socket.send(hello)
            async for frame in socket:
                measurement.pages[number].append((clock(), len(frame)))
    except (WebSocketException, OSError):
        measurement.errors += 1


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def script(endpoint: FakeEndpoint, seconds: float, rate: float) -> None:
    """Let every answer take about `seconds`, at `rate` tokens a second."""
    words = int(seconds * rate)
    paragraphs = -(-words // len(PARAGRAPH.split()))
    endpoint.script(KEY, answer="\n\n".join([PARAGRAPH] * paragraphs), token_delay=1 / rate)


def main() -> None:
    """Measure each number of streams on Cato and on the relay, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 50, 200])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=30.0, help="tokens a second of each stream")
    options = parser.parse_args()
    rows: list[tuple[Any, ...]] = []
    with (
        workbench() as home,
        start_endpoint() as endpoint,
        running(
            home / "cato",
            OPENAI_BASE_URL=endpoint.openai_url,
            OPENAI_API_KEY=KEY,
            CATO_CHAT_MESSAGES_PER_MINUTE="100000",
            CATO_CHAT_CONCURRENT_ANSWERS="100000",
        ) as cato,
    ):
        person = cato.set_up()
        for streams in options.streams:
            # Starting many takes a while; the first must not end before the last runs.
            script(endpoint, options.seconds + 5 + streams / 4, options.rate)
            ours = asyncio.run(with_cato(cato, person, streams, options.seconds))
            wait_for(lambda: is_settled(cato), "the answers to end", 180)
            failed = sum(row.state != "complete" for row in turns(cato)) - sum(row[-1] for row in rows)
            bare = asyncio.run(with_relay(home, ours, streams, options.seconds))
            tokens = streams * options.rate * options.seconds
            rows.append((streams, "Cato", *_figures(ours, bare, tokens), ours.errors, failed))
            rows.append((streams, "relay", *_figures(bare, bare, tokens), bare.errors, 0))
    head = ("streams", "server", "frames", "bytes each", "CPU s / 1,000 frames", "ratio", "CPU s / 1,000 tokens",
            "gap p50, ms", "gap p99, ms", "pages closed", "answers failed")  # fmt: skip
    table(head, rows)


def _figures(measurement: Measurement, bare: Measurement, tokens: float) -> tuple[float, ...]:
    return (
        len(measurement.frames),
        sum(measurement.frames) // max(len(measurement.frames), 1),
        measurement.cpu_of_1000,
        measurement.cpu_of_1000 / (bare.cpu_of_1000 or 1.0),
        1000 * measurement.cpu / tokens,
        1000 * percentile(measurement.gaps, 0.5),
        1000 * percentile(measurement.gaps, 0.99),
    )


if __name__ == "__main__":
    main()

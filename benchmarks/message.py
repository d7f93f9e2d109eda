"""Cost of one message: time added to the first token, CPU of each process, and 50 people who ask at once.

    python -m benchmarks.message [--messages 30] [--at-once 50] [--stored 200] [--web-processes 1]

The endpoint answers at once with 20 tokens. Bare relays pass its answer on in the same run. The web process has core 0
to itself; the endpoint, the pages and Cato's other processes share core 1. Several web processes share all cores with
them. CATO_TEST_TOPOLOGY=services measures PostgreSQL, Redis and a Chroma server.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.consistency import is_settled
from benchmarks.figures import percentile, table
from benchmarks.load import StreamEndpoint, Usage, Visitor, open_page
from benchmarks.streams import RELAYS, pin_all, running_relay
from tests.server import Cato, Client, running, wait_for

SUBJECTS = ("pump", "gasket", "manual", "invoice", "boiler", "firewall", "meeting", "sensor", "licence", "courier")


def stored_text(number: int) -> str:
    """Return a fact to be stored; each question about its subject and number recalls it."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    return f"The {subject} number {number} is kept in room {100 + number} and was checked by the team on a Tuesday."


def question(number: int) -> str:
    """Return a question that recalls something."""
    return f"Where is the {SUBJECTS[number % len(SUBJECTS)]} number {number} kept?"


async def first_messages(visitor: Visitor, count: int) -> list[float]:
    """Return the seconds from posting to the first token, each in a new thread whose page is opened at once."""
    times = []
    for number in range(count):
        began = _now()
        async with visitor.open(await visitor.post(question(number))) as page:
            times.append(await page.first_token() - began)
            await asyncio.sleep(0.3)
    return times


async def later_messages(visitor: Visitor, count: int) -> list[float]:
    """Return the seconds from posting to the first token, in a thread with an open page."""
    times = []
    thread = await visitor.post(question(0))
    async with visitor.open(thread) as page:
        await page.first_token()
        for number in range(1, count + 1):
            await asyncio.sleep(0.3)
            page.restart()
            began = _now()
            await visitor.post(question(number), thread)
            times.append(await page.first_token() - began)
    return times


async def at_once(visitors: list[Visitor]) -> list[float]:
    """Return the seconds to the first token of one message of each person, all posted at the same moment."""
    async with AsyncExitStack() as stack:
        threads = [await visitor.post("Hello there") for visitor in visitors]
        pages = [
            await stack.enter_async_context(visitor.open(thread))
            for visitor, thread in zip(visitors, threads, strict=True)
        ]
        await asyncio.gather(*(page.first_token() for page in pages))
        await asyncio.sleep(2)
        for page in pages:
            page.restart()
        began = _now()
        await asyncio.gather(
            *(
                visitor.post(question(n), thread)
                for n, (visitor, thread) in enumerate(zip(visitors, threads, strict=True))
            )
        )
        return [await page.first_token() - began for page in pages]


async def of_relay(home: Path, client: str, endpoint: StreamEndpoint, count: int) -> tuple[float, float]:
    """Return a relay's median seconds to the first token of the first message of a socket, and of a later one."""
    async with running_relay(home, client, endpoint) as (_server, url):
        first = []
        for _ in range(count):
            began = _now()
            async with open_page(url, "start") as page:
                first.append(await page.first_token() - began)
        later = []
        async with open_page(url, "start") as page:
            await page.first_token()
            for _ in range(count):
                await asyncio.sleep(0.05)
                page.restart()
                began = _now()
                await page.send("again")
                later.append(await page.first_token() - began)
        return statistics.median(first), statistics.median(later)


def _now() -> float:
    return asyncio.get_running_loop().time()


def settled(cato: Cato) -> None:
    wait_for(lambda: is_settled(cato), "everything to be stored and embedded", 300)


def main() -> None:
    """Measure Cato and the relays, and print the tables."""
    parser = command_parser("message", __doc__)
    parser.add_argument("--messages", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=50, help="people who ask at the same moment")
    parser.add_argument("--stored", type=int, default=200, help="exchanges stored before")
    parser.add_argument("--web-processes", type=int, default=1)
    options = parser.parse_args()
    endpoint = StreamEndpoint()
    with (
        workbench() as home,
        running(home / "cato", **endpoint.environment, CATO_SERVER_WEB_PROCESSES=str(options.web_processes)) as cato,
    ):
        administrator = cato.set_up()
        people = [cato.join(administrator, f"Person {number}") for number in range(options.at_once)]
        _store(administrator, options.stored)
        settled(cato)
        if options.web_processes == 1:
            pin_all(cato)
        rows: list[tuple[object, ...]] = []
        for client in RELAYS:
            first, later = asyncio.run(of_relay(home, client, endpoint, options.messages))
            rows.append((f"relay, {client}", 1000 * first, 1000 * later))
        usage = Usage(processes(cato))

        def with_endpoint(work: Callable[[], Awaitable[list[float]]]) -> list[float]:
            async def run() -> list[float]:
                async with endpoint.serve():
                    times = await work()
                    await asyncio.sleep(1)
                    return times

            usage.begin()
            times = asyncio.run(run())
            settled(cato)
            return times

        def cpu(messages: int) -> str:
            return " · ".join(f"{name} {1000 * spent / messages:.0f}" for name, spent in usage.spent().items())

        results: list[tuple[str, list[float]]] = []
        costs: list[tuple[object, ...]] = []
        for name, work, count in (
            ("first message", first_messages, options.messages),
            ("later message", later_messages, options.messages),
        ):
            with_visitor = Visitor(administrator)
            results.append((name, with_endpoint(lambda: work(with_visitor, count))))  # noqa: B023
            costs.append((name, cpu(count)))
        skipped_before = _skipped(cato)
        visitors = [Visitor(person) for person in people]
        crowd = with_endpoint(lambda: at_once(visitors))
        costs.append((f"{options.at_once} at once", cpu(2 * options.at_once)))
        rows.append(("Cato", *(1000 * statistics.median(times) for _, times in results)))
        recall = sorted(
            milliseconds for (milliseconds,) in cato.sql("SELECT recall_ms FROM chat_turn WHERE recall_ms > 0")
        )
        skipped = _skipped(cato) - skipped_before
    table(("server", "first message of a thread, ms", "later message, ms"), rows)
    table(("messages", "CPU ms per message"), costs)
    table(
        ("people at once", "first token p50, ms", "p95, ms", "recalls skipped", "recall p50 of all messages, ms"),
        [
            (
                options.at_once,
                1000 * percentile(crowd, 0.5),
                1000 * percentile(crowd, 0.95),
                skipped,
                percentile(recall, 0.5),
            )
        ],
    )


def _store(person: Client, count: int) -> None:
    with person.api_client() as api:
        for number in range(count):
            answer = api.post("/api/exchanges", json={"text": stored_text(number), "space": "team"})
            assert answer.is_success, answer.text


def _skipped(cato: Cato) -> int:
    ((count,),) = cato.sql("SELECT count(*) FROM chat_turn WHERE recall_note = 'slow'")
    return int(count)


if __name__ == "__main__":
    main()

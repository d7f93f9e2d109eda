"""The chat page in a browser: size, time to interaction, and cost of a growing answer.

    python -m benchmarks.pages [--threads 10000] [--turns 5000]

Two people on one Cato: one has a hundred threads, the other many, and each has one of fifty turns and a long one. For
each page: server time (median of 30), compressed transfer of a first visit and its requests, first paint, and time
until the composer can be used, in headless Chromium. Then an answer of ten thousand words: CPU time of the browser for
script, style and layout in one second, while the answer is short and when it is long. Memory is disabled, so only
database and web process are measured.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from tests.fake_endpoint import FakeEndpoint, start
from tests.server import Cato, Client, running

KEY = "pages"
_LOOKS = 30
_LOADS = 7
_WORDS = 10_000
_FILLING = 900  # seconds
_METRICS = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")


def conversations(threads: int, turns: int) -> Iterator[dict[str, Any]]:
    """Return threads of one turn each, then one of fifty turns, and one of `turns`."""
    began = datetime(2024, 1, 1, tzinfo=UTC)
    for number in range(threads):
        yield conversation(f"Thread {number}", 1, began + timedelta(minutes=number))
    yield conversation("A short thread", 50, began + timedelta(days=300))
    yield conversation("A long thread", turns, began + timedelta(days=301))


def conversation(title: str, turns: int, began: datetime, *, is_remembered: bool = False) -> dict[str, Any]:
    """Return a thread in Cato's own format."""
    messages = [
        {
            "id": f"{title} {number}",
            "said_at": (began + timedelta(minutes=number)).isoformat(),
            "message": f"Question {number} of {title}: where is the key of station {number}?",
            "answer": f"It hangs **behind the clock** of station {number}.\n\n- Ask for it\n- Bring it back\n",
            "answered_at": (began + timedelta(minutes=number, seconds=5)).isoformat(),
            "state": "complete",
        }
        for number in range(turns)
    ]
    thread: dict[str, Any] = {"id": title, "title": title, "created_at": began.isoformat(), "model": ""}
    thread["is_remembered"] = is_remembered
    return {"format": "cato-thread", "version": 1, "thread": thread, "turns": messages}


def fill(cato: Cato, person: Client, folder: Path, threads: int, turns: int) -> dict[str, str]:
    """Import them for this person; return the address of each page to measure."""
    folder.mkdir()
    for number, conversation in enumerate(conversations(threads, turns)):
        (folder / f"{number:06}.json").write_text(json.dumps(conversation))
    cato.manage("import_history", str(folder), "--user", person.email, timeout=_FILLING)
    shutil.rmtree(folder)
    pages = {"an empty page": "/"}
    for title in ("A short thread", "A long thread"):
        ids = cato.sql(
            "SELECT t.id FROM chat_thread t JOIN people_user u ON u.id = t.owner_id WHERE t.title = ? AND u.email = ?",
            title,
            person.email,
        )
        pages[title.lower()] = f"/t/{uuid.UUID(str(ids[0][0]))}"
    return pages


def server_time(person: Client, path: str) -> float:
    """Return the milliseconds of the response, median."""
    took = []
    for _ in range(_LOOKS):
        began = time.perf_counter()
        assert person.get(path).status_code == 200
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


def look_at(browser: Browser, person: Client, path: str) -> tuple[float, int, int, float, float]:
    """Return kilobytes, requests and hosts of a first visit; first paint and usable composer in ms (medians)."""
    paints, usable, weight = [], [], (0.0, 0, 0)
    for _ in range(_LOADS):
        context = browser.new_context(base_url=person.url)
        context.add_cookies(
            [{"name": c.name, "value": c.value or "", "url": person.url} for c in person.http.cookies.jar]
        )
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        sizes: list[float] = []
        hosts: set[str] = set()
        session.on("Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"]))
        session.on(
            "Network.requestWillBeSent",
            lambda event, hosts=hosts: (
                hosts.add(urlsplit(event["request"]["url"]).netloc) if event["request"] else None
            ),
        )
        page.goto(path, wait_until="networkidle")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        usable.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
        weight = (sum(sizes) / 1000, len(sizes), len(hosts - {""}))
        context.close()
    return *weight, statistics.median(paints), statistics.median(usable)


def cost_of_frames(browser: Browser, person: Client, endpoint: FakeEndpoint) -> list[tuple[str, float, int, float]]:
    """Return CPU milliseconds per second of streaming, per tenth of a long answer; and the long tasks."""
    words = [f"word{number}" + (".\n\n" if number % 60 == 59 else "") for number in range(_WORDS)]
    endpoint.script(KEY, answer=" ".join(words).replace("\n ", "\n"), token_delay=0.005)
    context = browser.new_context(base_url=person.url)
    context.add_cookies([{"name": c.name, "value": c.value or "", "url": person.url} for c in person.http.cookies.jar])
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Message", exact=True).fill("Tell me a very long story")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/*")
    page.evaluate(
        "() => { window.longest = []; new PerformanceObserver(list => list.getEntries().forEach("
        "entry => longest.push(entry.duration))).observe({ type: 'longtask' }); }"
    )
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    rows: list[tuple[str, float, int, float]] = []
    for tenth in range(1, 11):
        _until_words(page, (tenth - 1) * _WORDS // 10 + 50)
        before, began = _cpu_times(session), time.monotonic()
        _until_words(page, tenth * _WORDS // 10 - 200)
        seconds = time.monotonic() - began
        spent = 1000 * (_cpu_times(session) - before) / seconds
        long_tasks = page.evaluate("longest.splice(0)")
        rows.append((f"{tenth * 10} %", spent, len(long_tasks), max(long_tasks, default=0.0)))
    context.close()
    return rows


def _until_words(page: Page, number: int) -> None:
    page.wait_for_function(
        "number => Number(document.getElementById('turns').textContent.slice(-400).match(/word(\\d+)(?!.*word\\d)/s)?.[1] ?? 0)"
        " >= number",
        arg=number,
        timeout=180_000,
        polling=200,
    )


def _cpu_times(session: CDPSession) -> float:
    found: dict[str, float] = {
        metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]
    }
    return sum(found[name] for name in _METRICS)


def main() -> int:
    """Print the tables; return 1 if the chat page is 100 kB or larger, or contacts another host."""
    parser = command_parser("pages", __doc__)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5_000)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with workbench() as home, start() as endpoint, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with running(
            home / "cato",
            OPENAI_BASE_URL=endpoint.openai_url,
            OPENAI_API_KEY=KEY,
            CATO_VECTOR_STORE_ENABLED="false",
        ) as cato:
            few = cato.set_up()
            many = cato.join(few, "Many Threads")
            pages = {
                (owner, name): (person, path)
                for owner, person, threads in (("few", few, 100), ("many", many, options.threads))
                for name, path in fill(cato, person, home / owner, threads, options.turns).items()
            }
            rows, heaviest, max_hosts = [], 0.0, 0
            for (owner, name), (person, path) in pages.items():
                weight, requests, hosts, paint, usable = look_at(browser, person, path)
                heaviest, max_hosts = max(heaviest, weight), max(max_hosts, hosts)
                rows.append((f"{name}, {owner} threads", server_time(person, path), weight, requests, paint, usable))
            table(("page", "server, ms", "kB", "requests", "first paint, ms", "usable, ms"), rows)
            print()
            table(
                ("of the answer", "browser, ms a second", "long tasks", "longest, ms"),
                cost_of_frames(browser, few, endpoint),
            )
        browser.close()
    return int(heaviest >= 100 or max_hosts > 1)


if __name__ == "__main__":
    sys.exit(main())

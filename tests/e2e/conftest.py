"""A real Chromium before a running Cato; a page that breaks its own rules fails the test that opened it.

Playwright's synchronous driver keeps an event loop in this thread, so nothing here may use Django's ORM in process:
people are made by HTTP, and the database is read by `cato.sql`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

from tests.server import Cato, Client

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 15_000  # milliseconds; a machine with two cores also runs the model, Chroma and the browser
KEY = "cato"  # what the shared Cato shows to the fake endpoint

Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser that this machine has."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"None of {', '.join(NAMES)} is on the PATH; the browser's tests must run here.")
        pytest.skip(f"None of {', '.join(NAMES)} is on the PATH.")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """Open a page in a browser of its own: `visit(person, path)`, or `visit(None, address)` for who is signed out."""
    contexts = []
    broken: list[str] = []

    def open_page(person: Client | None, path: str = "/", *, url: str | None = None, **options: Any) -> Page:
        context = chromium.new_context(base_url=url or (person.url if person else None), **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        if person is not None:
            context.add_cookies([_cookie(c, person.url) for c in person.http.cookies.jar])
        page = context.new_page()
        page.on("pageerror", lambda error: broken.append(f"{page.url}: {error}"))
        page.on("console", lambda said: broken.append(f"{page.url}: {said.text}") if _is_violation(said) else None)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not broken, "\n".join(broken)


@pytest.fixture(autouse=True)
def plain_answers(request: pytest.FixtureRequest) -> None:
    """The endpoint answers at once unless a test says otherwise."""
    if "cato" in request.fixturenames:
        request.getfixturevalue("endpoint").script(KEY, answer="All right.")


def say(page: Page, message: str) -> None:
    """Type a message and send it with Enter."""
    page.get_by_label("Message", exact=True).fill(message)
    page.get_by_label("Message", exact=True).press("Enter")


def begin(page: Page, message: str) -> str:
    """Say the first message of a new thread; returns the thread's path."""
    say(page, message)
    page.wait_for_url("**/t/*")
    return page.url.removeprefix(_origin(page)).split("#")[0]


def turn(page: Page, number: int = -1) -> Locator:
    """One turn of the thread, by default the last."""
    return page.locator("article.turn").nth(number)


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until `target` has the focus, as who has no mouse does."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if target.evaluate("node => node === document.activeElement"):
            return
    raise AssertionError(f"60 presses of Tab do not reach {target}")


def row_count(cato: Cato, table: str) -> int:
    return int(cato.sql(f"SELECT count(*) FROM {table}")[0][0])


def _origin(page: Page) -> str:
    return "/".join(page.url.split("/")[:3])


def _cookie(cookie: Any, url: str) -> dict[str, Any]:
    return {"name": cookie.name, "value": cookie.value, "url": url, "httpOnly": True, "sameSite": "Lax"}


def _is_violation(said: ConsoleMessage) -> bool:
    # htmx logs every answer that is not 2xx as an error; those are part of some tests.
    return said.type == "error" and "Content Security Policy" in said.text

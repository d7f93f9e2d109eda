"""Chromium, and Firefox, with a running Cato; a page that violates its Content Security Policy fails the test.

Playwright's synchronous driver keeps an event loop in this thread, so tests cannot use Django's ORM: people are created
by HTTP, and the database is read by `cato.sql`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Playwright, expect, sync_playwright

from tests.server import Cato, Client

# The shell has the same engine and takes a third of the processor time, as it draws no window of its own.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
TIMEOUT = 30_000  # milliseconds; two cores also run the model, Chroma and the browser
KEY = "cato"  # the shared Cato's key at the fake endpoint

Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def chromium(driver: Playwright) -> Iterator[Browser]:
    """Start the browser of this machine."""
    browser = driver.chromium.launch(executable_path=find_browser(*NAMES), headless=True, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def firefox(driver: Playwright) -> Iterator[Browser]:
    """Start the Firefox of this machine, which is driven by WebDriver BiDi."""
    path = find_browser("firefox-esr", "firefox")
    browser = driver.firefox.launch(channel="moz-firefox", executable_path=path, headless=True)
    yield browser
    browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """Open a page in a new browser context: `visit(person, path)`, or `visit(None, address)` signed out."""
    yield from open_pages(chromium)


@pytest.fixture
def visit_firefox(firefox: Browser) -> Iterator[Visit]:
    """Open a page in a new context of Firefox, as `visit` does."""
    yield from open_pages(firefox)


@pytest.fixture(autouse=True)
def plain_answers(request: pytest.FixtureRequest) -> None:
    """Let the endpoint answer immediately unless a test scripts it."""
    if "cato" in request.fixturenames:
        request.getfixturevalue("endpoint").script(KEY, answer="All right.")


def send_message(page: Page, message: str) -> None:
    """Type a message and send it with Enter.

    Enter needs the scripts of a page that a link has just opened, and waits while the message before is sent.
    """
    page.wait_for_load_state()
    expect(page.locator("#composer.htmx-request")).to_have_count(0)
    page.get_by_label("Message", exact=True).fill(message)
    page.get_by_label("Message", exact=True).press("Enter")


def begin_thread(page: Page, message: str) -> str:
    """Send the first message of a new thread; return the thread's path."""
    send_message(page, message)
    page.wait_for_url("**/t/*")
    return page.url.removeprefix(_origin(page)).split("#")[0]


def turn(page: Page, number: int = -1) -> Locator:
    """Return one turn of the thread, by default the last."""
    return page.locator("article.turn").nth(number)


def wait_for_answer(page: Page, timeout: float = TIMEOUT) -> None:
    """Wait until the last answer is complete and remembered.

    A page that was opened before replaces the turn when it is synchronised, and with it the elements that a test measures.
    """
    expect(turn(page).locator(".turn__actions")).to_be_visible(timeout=timeout)
    expect(turn(page).locator(".turn__memory .memory-icon--remembering")).to_have_count(0)


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until `target` has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if target.evaluate("node => node === document.activeElement"):
            return
    raise AssertionError(f"60 presses of Tab do not reach {target}")


def row_count(cato: Cato, table: str) -> int:
    return int(cato.sql(f"SELECT count(*) FROM {table}")[0][0])


def find_browser(*names: str) -> str:
    """Return the path of the first program that is installed; without one, skip the test, or fail it in CI."""
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    missing = f"None of {', '.join(names)} is on the PATH"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{missing}; the browser's tests must run here.")
    pytest.skip(f"{missing}.")


def open_pages(browser: Browser) -> Iterator[Visit]:
    contexts = []
    errors: list[str] = []

    def open_page(person: Client | None, path: str = "/", *, url: str | None = None, **options: Any) -> Page:
        # Tests that intercept requests would not see those of a service worker.
        options = {"service_workers": "block", **options}
        context = browser.new_context(base_url=url or (person.url if person else None), **options)
        contexts.append(context)
        context.set_default_timeout(TIMEOUT)
        if person is not None:
            context.add_cookies([_cookie(c, person.url) for c in person.http.cookies.jar])
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
        page.on(
            "console", lambda message: errors.append(f"{page.url}: {message.text}") if _is_violation(message) else None
        )
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors, "\n".join(errors)


def _origin(page: Page) -> str:
    return "/".join(page.url.split("/")[:3])


def _cookie(cookie: Any, url: str) -> dict[str, Any]:
    return {"name": cookie.name, "value": cookie.value, "url": url, "httpOnly": True, "sameSite": "Lax"}


def _is_violation(message: ConsoleMessage) -> bool:
    # htmx logs every response that is not 2xx as an error; some tests expect those.
    return message.type == "error" and "Content Security Policy" in message.text

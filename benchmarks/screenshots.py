"""Screenshots of every page, light and dark, on desktop and phone.

    python -m benchmarks.screenshots FOLDER

Starts a Cato with a small team and some content.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from tests.fake_endpoint import FakeEndpoint, start
from tests.server import Cato, Client, running, wait_for

KEY = "screens"
ANSWER = """The key hangs **behind the clock** in the hall [1]. Take it before you water:

- [x] open the tap, some $2\\,\\frac{l}{min}$
- [ ] close it again

```python
def water(litres: int) -> str:
    return f"{litres} litres"  # at noon, never
```

| Day | Litres |
|-----|-------:|
| Monday | 12 |
| Tuesday | 14 |
"""
SIZES: dict[str, ViewportSize] = {"desk": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def fill(cato: Cato, endpoint: FakeEndpoint, administrator: Client, folder: Path) -> dict[str, str]:
    """Create what the pages show; return their addresses by name."""
    administrator.post("/admin/groups", {"name": "Hardware"})
    cato.join(administrator, "Bob Team")
    endpoint.script(KEY, answer="Noted: behind the clock in the hall.")
    first = administrator.send_message("The key to the greenhouse hangs behind the clock in the hall.")
    wait_for(lambda: "Remembered</span>" in administrator.thread_page(first), "the first to be remembered")
    plan = folder / "Watering plan.md"
    plan.write_text("# Watering\n\nThe greenhouse gets twelve litres on Mondays.\n\n## Keys\n\nSee the clock.\n" * 4)
    with plan.open("rb") as file:
        administrator.post("/documents", files={"files": (plan.name, file, "text/markdown")})
    wait_for(
        lambda: "memory-icon--remembered" in administrator.get("/documents").text.partition("<main")[2],
        "the document to be read",
    )
    document = administrator.get("/documents").text.split('class="table__name" href="')[1].split('"')[0]
    endpoint.script(KEY, answer=ANSWER, reasoning="Where was the key? In the hall, I think.")
    thread = administrator.send_message("Where do we keep the key to the greenhouse?")
    wait_for(lambda: "Remembered</span>" in administrator.thread_page(thread), "the answer to be remembered")
    endpoint.script(KEY, mode="error-500")
    failed = administrator.send_message("And who has the other one?")
    wait_for(lambda: "turn__status--failed" in administrator.thread_page(failed), "the failure")
    return {
        "new": "/", "thread": f"/t/{thread}", "failed": f"/t/{failed}", "search": "/search?q=greenhouse key",
        "documents": "/documents", "document": document, "stats": "/stats", "threads": "/threads", "import": "/import",
        "settings": "/settings", "password": "/settings/password", "leave": "/settings/delete-account", "model": "/settings/model",
        "people": "/admin/people", "groups": "/admin/groups", "exchanges": "/admin/exchanges", "jobs": "/admin/jobs",
        "knowledge": "/knowledge", "extraction": "/knowledge/extraction", "projects": "/projects", "mentions": "/mentions",
        "instructions": "/instructions", "prompts": "/prompts", "notes": "/notes", "usage": "/settings/usage",
        "digest": "/settings/digest", "security": "/settings/security", "tools": "/settings/tools",
        "endpoints": "/settings/endpoints", "all-usage": "/admin/usage", "limits": "/admin/usage/limits",
        "operations": "/admin/operations", "retention": "/admin/retention", "audit": "/admin/audit",
        "nothing": "/nothing-here", "move": f"/t/{thread}/move", "remember": f"/t/{thread}/memory",
    }  # fmt: skip


def _recalled(page: Page) -> None:
    page.locator(".recall__panel > summary").last.click()
    page.locator(".recall-item summary").first.click()
    page.wait_for_selector(".recall-item__text")


def _find(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.locator("#quick-search-query").fill("greenhouse")
    page.wait_for_selector(".quick-search__group")


def _commands(page: Page) -> None:
    page.get_by_label("Message", exact=True).fill("/v")
    page.wait_for_selector("#slash-menu:not([hidden])")


def _drawer(page: Page) -> None:
    page.locator(".topbar__menu-button").first.click()


# Pages after an action: the address by name, and the action.
STATES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "recalled": ("thread", _recalled),
    "find": ("thread", _find),
    "commands": ("thread", _commands),
}


@contextmanager
def pages(browser: Browser, person: Client, size: str, scheme: Literal["light", "dark"]) -> Iterator[Page]:
    """Yield a signed-in page of this size and colour scheme."""
    context = browser.new_context(
        base_url=person.url,
        viewport=SIZES[size],
        color_scheme=scheme,
        has_touch=size == "phone",
        is_mobile=size == "phone",
    )
    context.add_cookies([{"name": c.name, "value": c.value or "", "url": person.url} for c in person.http.cookies.jar])
    yield context.new_page()
    context.close()


def main() -> None:
    """Take all screenshots, named by page, size and colour scheme."""
    parser = command_parser("screenshots", __doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with workbench() as home, start() as endpoint, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with running(home / "cato", OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY=KEY) as cato:
            person = cato.set_up()
            addresses = fill(cato, endpoint, person, home)
            for size in SIZES:
                for scheme in SCHEMES:
                    with pages(browser, person, size, scheme) as page:
                        for name, path in addresses.items():
                            page.goto(path)
                            page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
                        for name, (address, act) in STATES.items():
                            page.goto(addresses[address])
                            act(page)
                            page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
                        if size == "phone":
                            page.goto("/")
                            _drawer(page)
                            page.screenshot(path=folder / f"drawer-{size}-{scheme}.png")
        browser.close()
    print(json.dumps(sorted(path.name for path in folder.glob("*.png"))))


if __name__ == "__main__":
    main()

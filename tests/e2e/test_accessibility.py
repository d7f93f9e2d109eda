"""axe-core finds no violation of WCAG 2.2 AA on any page in any state."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.groups import make_group, start_thread

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ANSWER = """# A plan

Water the **greenhouse** [now](http://a.example), with $x^2$ litres:

- [x] open the tap
- [ ] close it again

```python
def water(litres: int) -> str:  # a comment
    return f"{litres} litres"
```

| Day | Litres |
|-----|-------:|
| Monday | 12 |

> Nobody waters at noon.
"""
MEMBER_PAGES = [
    "/", "/search", "/search?q=greenhouse", "/documents", "/notes", "/stats", "/threads", "/import", "/settings",
    "/instructions", "/prompts", "/receipts", "/knowledge", "/knowledge/extraction",
    "/settings/digest", "/settings/password", "/settings/export", "/settings/delete-account", "/nothing-here",
]  # fmt: skip
ADMIN_PAGES = [
    "/settings/model",
    "/admin/people",
    "/admin/groups",
    "/admin/exchanges",
    "/admin/documents",
    "/admin/usage",
    "/admin/usage/limits",
    "/admin/jobs",
    "/admin/operations",
    "/admin/retention",
    "/admin/audit",
]
WIDE_TABLE = "\n".join(
    ["|" + " column |" * 14, "|" + "---|" * 14, *(f"| value {n} |" + " value |" * 13 for n in range(3))]
)
OTHER_DISPLAYS = {
    "forced-colours": {"forced_colors": "active"},
    "dark-forced-colours": {"forced_colors": "active", "color_scheme": "dark"},
    "320-px": {"viewport": {"width": 320, "height": 640}},
}


def violations(page: Page, *, is_covered: bool = False) -> list[str]:
    """Return axe's findings on the current page, one per line; of a covered page only what is on top."""
    rules = RULES[:-1] if is_covered else RULES
    found = Axe().run(page, options={"runOnly": rules}).response["violations"]
    return [
        f"{page.url} {violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in found
        for node in violation["nodes"]
    ]


def overflowing(page: Page) -> list[str]:
    """Return the address if the page scrolls sideways."""
    return [] if page.evaluate("document.scrollingElement.scrollWidth <= innerWidth") else [f"{page.url} is too wide"]


@pytest.fixture(params=["light", "dark"])
def check(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"color_scheme": request.param, "reduced_motion": "reduce"}


def test_no_page_has_violations(cato, administrator, visit, check):
    page = visit(administrator, "/", **check)
    begin_thread(page, "Where is the key to the greenhouse?")
    wait_for_answer(page)
    found, question = [], f"{page.url}/delete"
    for path in [question, *MEMBER_PAGES, *ADMIN_PAGES, f"/spaces/{make_group(cato, administrator)}"]:
        page.goto(path)
        found += violations(page)
    page.locator(".menu summary").last.click()
    found += violations(page)
    assert not found, "\n".join(found)


def test_no_page_has_violations_on_a_phone(administrator, visit, check):
    page = visit(administrator, "/", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, **check)
    found = violations(page)
    page.get_by_role("button", name="Menu").click()
    found += violations(page, is_covered=True)
    for path in ["/settings", "/documents", "/admin/exchanges"]:
        page.goto(path)
        found += violations(page)
    assert not found, "\n".join(found)


def test_pages_without_a_login_have_no_violations(cato, visit, check):
    page = visit(None, "/sign-in", url=cato.url, **check)
    found = violations(page)
    page.goto("/join/a-link-that-is-used-up")
    found += violations(page)
    assert not found, "\n".join(found)


def test_a_thread_has_no_violations_in_any_state(alice, visit, endpoint, check):
    endpoint.script(KEY, answer="The key hangs behind the clock.")
    page = visit(alice, "/", **check)
    begin_thread(page, "The key to the greenhouse hangs behind the clock.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    page.goto("/")
    endpoint.script(KEY, answer=ANSWER, reasoning="I think of the greenhouse, and of its key. " * 3, token_delay=0.25)
    path = begin_thread(page, "Where does the key to the greenhouse hang?")
    expect(turn(page).locator(".reasoning__text")).to_contain_text("greenhouse")
    found = violations(page)
    turn(page).locator(".reasoning summary").click()
    send_message(page, "One more that waits")
    expect(turn(page)).to_contain_text("Queued until the previous answer ends")
    found += violations(page)
    page.get_by_role("button", name="Withdraw message").click()
    wait_for_answer(page, timeout=30_000)
    turn(page).locator(".recall__panel > summary").click()
    turn(page).locator(".recall-item summary").first.click()
    expect(turn(page).get_by_role("button", name="Not relevant")).to_be_visible()
    found += violations(page)
    page.goto(path)
    for open_, state in (
        (lambda: turn(page).locator(".menu summary").click(), "Edit message…"),
        (lambda: page.keyboard.press("Control+/"), "Shortcuts"),
        (lambda: page.keyboard.press("Control+k"), "Search memory for"),
        (lambda: page.get_by_role("switch").click(), "Stop saving this thread to memory?"),
        (lambda: page.get_by_label("Message", exact=True).fill("/v"), "/vquery"),
        (lambda: page.get_by_role("button", name="Chat model:").click(), "On this server; no data leaves it"),
    ):
        open_()
        if state == "Search memory for":
            page.locator("#quick-search-query").fill("greenhouse")
        expect(page.get_by_text(state).first).to_be_visible()
        found += violations(page)
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
    page.get_by_label("Message", exact=True).fill("/help")
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_be_visible()
    send_message(page, "/vstast")
    expect(page.get_by_role("alert").filter(has_text="Did you mean")).to_be_visible()
    found += violations(page)
    page.context.set_offline(True)
    expect(page.get_by_text("You are offline")).to_be_visible()
    found += violations(page)
    assert not found, "\n".join(found)


def test_a_failed_answer_and_a_document_have_no_violations(alice, visit, endpoint, check):
    page = visit(alice, "/documents", **check)
    page.locator("input[type=file]").set_input_files(
        {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"# Keys\n\nThe key to the sauna is on the hook.\n"}
    )
    expect(page.locator(".document-row__state .memory-icon--remembered").first).to_be_visible(timeout=30_000)
    found = violations(page)
    page.locator(".document-row .table__name").first.click()
    expect(page.get_by_text("on the hook").first).to_be_visible()
    found += violations(page)
    endpoint.script(KEY, mode="error-500")
    page.goto("/")
    begin_thread(page, "This fails")
    expect(turn(page).locator(".turn__status--failed")).to_be_visible()
    found += violations(page)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("display", OTHER_DISPLAYS)
def test_shared_threads_and_lists_have_no_violations_in_other_displays(
    cato, administrator, alice, bob, visit, endpoint, tmp_path, display
):
    endpoint.script(KEY, answer=WIDE_TABLE)
    shared = start_thread(alice, make_group(cato, administrator, alice, bob), "One line\n" * 20)
    alice.post("/prompts", {"name": "check", "text": "Check this text"})
    bob.send_message("@Alice Owner, who has the key?", shared)
    visit(bob, f"/t/{shared}")
    page = visit(alice, f"/t/{shared}", reduced_motion="reduce", **OTHER_DISPLAYS[display])
    for sign in (".thread__news", ".turn__unfold", ".answer__table", "#presence .avatar--present"):
        expect(page.locator(sign).first).to_be_visible()
    # A button that the composer covers in part would be too small.
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    found = violations(page) + overflowing(page)
    (tmp_path / "raw.zip").write_bytes(b"PK\x03\x04" + bytes(60))
    page.locator("#files").set_input_files(tmp_path / "raw.zip")
    expect(page.locator("#chips .chip--failed")).to_be_visible()
    message = page.get_by_label("Message", exact=True)
    # Only one person has this name: with those of other tests, the list would scroll.
    message.press_sequentially("Ask @ada admin")
    expect(page.get_by_role("option").first).to_be_visible()
    found += violations(page) + overflowing(page)
    message.fill("")
    page.get_by_role("button", name="Chat model:").click()
    expect(page.locator("#model-list")).to_be_visible()
    found += violations(page) + overflowing(page)
    page.keyboard.press("Escape")
    if display == "320-px":
        page.get_by_role("button", name="Open the menu").click()
    page.locator(f"#thread-{shared}").focus()
    page.keyboard.press("Shift+F10")
    expect(page.get_by_role("button", name="Pin")).to_be_focused()
    found += violations(page, is_covered=True) + overflowing(page)
    for path in ("/prompts", "/mentions", "/search?q=key&type=exchange", "/threads"):
        page.goto(path)
        found += violations(page) + overflowing(page)
    page.goto(f"/t/{shared}")
    turn(page, 0).get_by_title("More", exact=True).click()
    turn(page, 0).get_by_text("Forget…").click()
    expect(page.locator("#dialog")).to_be_visible()
    found += violations(page, is_covered=True) + overflowing(page)
    page.locator("#dialog").get_by_role("button", name="Forget everywhere").click()
    expect(page.locator(".receipt")).to_be_focused()
    found += violations(page) + overflowing(page)
    assert not found, "\n".join(found)

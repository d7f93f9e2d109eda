"""Key hints below the composer: each until its key was used three times, and only where there is a keyboard and room."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import begin_thread, wait_for_answer


def hint(page: Page, text: str) -> Locator:
    return page.locator("#key-hints > span").filter(has_text=text)


def set_uses(page: Page, uses: dict[str, int]) -> None:
    page.evaluate("uses => localStorage.setItem('cato-keys', JSON.stringify(uses))", uses)
    page.reload()


def test_a_hint_is_shown_until_its_key_was_used_three_times(visit, alice):
    page = visit(alice)
    message = page.get_by_label("Message", exact=True)
    begin_thread(page, "First")
    wait_for_answer(page)
    set_uses(page, {"enter": 1, "line-break": 2, "slash": 2, "at": 3, "up": 2})
    expect(hint(page, "people, documents")).to_be_hidden()

    for key, text in (("Shift+Enter", "new line"), ("/", "commands"), ("ArrowUp", "edit last message")):
        message.fill("")
        expect(hint(page, text)).to_be_visible()
        message.press(key)
        expect(hint(page, text)).to_be_hidden()
    # The dialog of the message is closed.
    page.reload()
    expect(hint(page, "people, documents")).to_be_hidden()
    for _ in range(2):
        expect(hint(page, "send")).to_be_visible()
        message.fill("Next")
        message.press("Enter")
    expect(page.locator("#key-hints")).to_be_hidden()


def test_nothing_is_loaded_once_each_key_is_known(visit, alice):
    page = visit(alice)
    scripts: list[str] = []
    page.on("request", lambda request: scripts.append(request.url) if "key-hints" in request.url else None)
    set_uses(page, {"enter": 3, "line-break": 3, "slash": 3, "at": 2, "up": 3})
    expect(hint(page, "send")).to_be_hidden()
    page.get_by_label("Message", exact=True).press("@")
    expect(page.locator("#key-hints")).to_be_hidden()
    assert len(scripts) == 1

    page.reload()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.locator("#key-hints")).to_be_hidden()
    assert len(scripts) == 1


def test_narrow_windows_and_touch_screens_show_no_hints(visit, alice):
    page = visit(alice)
    expect(hint(page, "send")).to_be_visible()
    page.set_viewport_size({"width": 639, "height": 800})
    expect(hint(page, "send")).to_be_hidden()

    touch = visit(alice, has_touch=True, is_mobile=True)
    expect(hint(touch, "send")).to_be_hidden()

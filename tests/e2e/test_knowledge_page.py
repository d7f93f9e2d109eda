"""The page of statements in the browser: every display, keys, filters, and the focus after a decision."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.test_accessibility import overflowing, violations
from tests.groups import make_group
from tests.knowledge import create_statements

# Zoomed to 200 %, dark, in forced colours, and on a small phone.
DISPLAYS: tuple[dict[str, Any], ...] = (
    {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    {"color_scheme": "dark"},
    {"forced_colors": "active"},
    {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True},
)

# Records what is added to the status once the page is open, which is what screen readers announce.
RECORD_ANNOUNCED = """addEventListener("DOMContentLoaded", () => {
  const toasts = document.getElementById("toasts");
  const record = (changes) => {
    toasts.dataset.announced ??= "";
    for (const node of changes.flatMap((change) => [...change.addedNodes])) toasts.dataset.announced += node.textContent;
  };
  new MutationObserver(record).observe(toasts, { childList: true });
});"""


@pytest.fixture
def team(cato, administrator, alice, bob) -> dict[str, str]:
    """Return the ids of Alice's statements in a group with Bob."""
    group = make_group(cato, administrator, alice, bob)
    return {"group": group} | create_statements(cato, alice, group)


def summary(page: Page, text: str) -> Locator:
    """Return the part of a statement that opens it and has its focus."""
    return page.locator(".statement__summary").filter(has=page.locator(".statement__text", has_text=text))


def said(page: Page, text: str) -> None:
    """Check that this message, and no other, is shown and announced."""
    expect(page.locator("#toasts")).to_have_attribute("data-announced", text)
    expect(page.get_by_role("status").locator(".toast")).to_have_text([text])


def test_statements_in_every_state_have_no_violations_in_any_display(alice, visit, team):
    found = []
    for options in DISPLAYS:
        page = visit(alice, "/knowledge", reduced_motion="reduce", **options)
        expect(page.locator(".statement")).to_have_count(6)
        page.evaluate("document.querySelectorAll('main details').forEach((details) => { details.open = true; })")
        found += violations(page) + overflowing(page)
        if options.get("has_touch"):
            for target in page.locator(".statement :is(a, button, summary, label:has(input))").all():
                box = target.bounding_box()
                if box["height"] < 44 or box["width"] < 44:
                    found.append(f"{target.inner_text()}: {box}")
    assert not found, "\n".join(found)


def test_with_touch_the_state_of_extraction_and_its_button_are_level(cato, administrator, visit):
    group = make_group(cato, administrator)
    administrator.post(f"/knowledge/extraction/{group}", {"action": "on"})
    page = visit(administrator, "/knowledge", viewport={"width": 640, "height": 844}, has_touch=True, is_mobile=True)

    state = page.locator(".extraction__state", has=page.locator(f"#pause-{group}"))
    texts = state.evaluate(
        """state => [...state.children].slice(1).map((child) => {
          const range = document.createRange();
          range.selectNodeContents(child.firstChild);
          return Math.round(range.getBoundingClientRect().bottom);
        })"""
    )

    assert len(texts) == 2
    assert texts[0] == texts[1]


def test_two_people_decide_about_statements_with_the_keyboard(alice, bob, visit, team):
    page = visit(bob, "/")
    page.add_init_script(RECORD_ANNOUNCED)
    page.goto("/knowledge?order=newest")
    page.keyboard.press("/")
    expect(page.get_by_label("Words")).to_be_focused()
    page.keyboard.type("buoy")
    expect(page.locator(".statement")).to_have_count(3)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    unconfirmed = summary(page, "call in step")
    expect(unconfirmed).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_contain_text("Confirm the statement", use_inner_text=True)
    page.keyboard.press("Escape")
    expect(unconfirmed).to_be_focused()
    page.keyboard.press("k")
    said(page, "Confirmed by you.")
    expect(unconfirmed).to_be_focused()
    expect(unconfirmed).to_contain_text("confirmed by Bob")

    page.keyboard.press("e")
    text = page.locator("textarea:visible")
    expect(text).to_be_focused()
    page.keyboard.press("Escape")
    expect(text).to_have_count(0)
    page.keyboard.press("e")
    text.fill("Fixed intervals made seven buoys call in step.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said(page, "Superseded by your statement.")
    expect(summary(page, "seven buoys")).to_be_focused()

    page.goto("/knowledge")
    lid = summary(page, "The lid is 3 mm thinner")
    lid.focus()
    page.keyboard.press("k")
    expect(lid).to_be_focused()
    page.locator(".statement").filter(has=lid).get_by_role("button", name="Keep this one").press("Enter")
    said(page, "Resolved by you.")
    expect(lid).to_be_focused()
    expect(lid).to_contain_text("confirmed by Bob")

    alices = visit(alice, "/")
    alices.add_init_script(RECORD_ANNOUNCED)
    alices.goto("/knowledge")
    mine = summary(alices, "at most 28 retries")
    mine.focus()
    alices.keyboard.press("f")
    alices.keyboard.press("Tab")
    expect(alices.get_by_role("button", name="Forget it")).to_be_focused()
    alices.keyboard.press("Enter")
    said(alices, "Forgotten. Nobody can recall or find it any more.")
    expect(summary(alices, "at most 40 retries")).to_be_focused()
    page.goto("/knowledge")
    expect(summary(page, "at most 40 retries")).to_be_visible()
    expect(mine).to_have_count(0)
    summary(page, "at most 40 retries").focus()
    page.keyboard.press("o")
    expect(page.get_by_text("40 retries.", exact=True)).to_be_visible()


def test_filters_apply_when_they_are_chosen_and_a_decision_returns_below_the_bar(alice, visit, team):
    page = visit(alice, "/", viewport={"width": 390, "height": 500})
    page.add_init_script(RECORD_ANNOUNCED)
    page.goto("/knowledge")
    page.get_by_role("checkbox", name="4 to review").check()
    expect(page.locator(".statement")).to_have_count(4)
    expect(page.get_by_role("status").get_by_text("4 statements")).to_be_attached()
    page.get_by_label("Order").select_option("Most recalled")
    expect(page.locator(".knowledge-topic h2")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Order")).to_have_value("recalled")

    page.goto(f"/knowledge#statement-{team['unconfirmed']}")
    unconfirmed = page.locator(f"#statement-{team['unconfirmed']}")
    unconfirmed.focus()
    page.keyboard.press("k")
    said(page, "Confirmed by you.")
    expect(unconfirmed).to_be_focused()
    assert unconfirmed.bounding_box()["y"] >= page.locator(".topbar").bounding_box()["height"]


def test_the_printed_page_has_statements_with_states_and_sources_and_nothing_to_press(alice, visit, team):
    page = visit(alice, "/knowledge")
    closed = page.locator(".statement").filter(has=page.locator(".statement__text", has_text="at most 28 retries"))
    expect(closed.locator("q").first).to_be_hidden()

    page.emulate_media(media="print")

    expect(closed.locator("q:visible")).to_have_text(["From now on 28 retries a day.", "28 retries for each buoy."])
    expect(closed.get_by_text("Current")).to_be_visible()
    expect(page.locator("main :is(a, button, select, input):visible")).to_have_count(0)
    expect(page.locator(".sidebar")).to_be_hidden()

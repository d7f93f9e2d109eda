"""The search page in the browser: filters, operators, keys, and Back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.server import wait_for

NOTES = [
    "The antenna sits on the mast since the lid got wet.",
    "An antenna of the old kind lies in the shed.",
    "The wet lid detunes the antenna by 60 MHz.",
]


@pytest.fixture
def notes(alice) -> list[str]:
    """Return three remembered messages of Alice about an antenna."""
    for note in NOTES:
        thread = alice.send_message(note)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")
    return NOTES


def hits(page: Page):
    return page.locator(".search-hit__title a")


def test_filters_and_operators_apply_while_typing_and_the_address_holds_them(visit, alice, notes):
    page = visit(alice, "/search")
    query = page.get_by_role("searchbox", name="Search memory")
    query.fill("antenna")
    expect(hits(page)).to_have_count(3)
    page.get_by_label("Type", exact=True).select_option("Documents")
    expect(page.get_by_role("heading", name="No results")).to_be_visible()
    page.get_by_role("link", name="Any type (3)").click()
    expect(hits(page)).to_have_count(3)

    query.fill('antenna "wet lid" from:me')
    expect(hits(page)).to_have_count(1)
    expect(page.get_by_label("Who", exact=True)).to_have_value(re.compile(".+"))
    expect(page.locator(".search-hit mark").first).to_have_text("wet")
    query.press("Enter")
    expect(query).to_have_value('antenna "wet lid"')
    expect(hits(page)).to_have_count(1)
    address = page.url
    page.get_by_role("link", name="Remove the filter Who").click()
    expect(page.get_by_label("Who", exact=True)).to_have_value("")
    page.goto(address)
    expect(page.get_by_label("Who", exact=True)).to_have_value(re.compile(".+"))


def test_hits_are_selected_and_opened_with_keys_and_back_returns_to_the_same_one(visit, alice, notes):
    page = visit(alice, "/search?q=antenna")
    page.locator("#query").focus()
    page.keyboard.press("ArrowDown")
    expect(hits(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(hits(page).nth(1)).to_be_focused()
    opened = hits(page).nth(1).get_attribute("id")
    page.keyboard.press("o")
    page.wait_for_url("**/t/**")
    page.go_back()
    expect(page.locator(f"#{opened}")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("/")
    expect(page.get_by_label("Space", exact=True)).to_be_focused()


def test_c_asks_about_the_selected_hit_in_a_new_thread(visit, cato, alice, notes):
    page = visit(alice, "/search?q=antenna")
    hits(page).nth(1).focus()
    asked = hits(page).nth(1).get_attribute("id").removeprefix("hit-").replace("-", "")
    page.keyboard.press("c")
    expect(page.get_by_text("Pinned for you.")).to_be_visible()
    assert page.url == f"{alice.url}/"
    assert cato.sql("SELECT exchange_id, kind FROM memory_feedback") == [(asked, "pinned")]
    page.goto("/search?q=antenna")
    query = page.locator("#query")
    query.press("End")
    query.press_sequentially("c/")
    expect(query).to_have_value("antennac/")


def test_a_hit_is_asked_about_without_scripts(visit, alice, notes):
    page = visit(alice, "/search?q=antenna", java_script_enabled=False)
    page.get_by_role("button", name="Ask about this").first.click()
    expect(page.get_by_text("Pinned for you.")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_visible()


def test_the_order_is_changed_without_scripts(visit, alice, notes):
    page = visit(alice, "/search?q=antenna", java_script_enabled=False)
    page.get_by_role("link", name="Oldest").click()
    expect(page.get_by_text("3 results, oldest first")).to_be_visible()
    expect(hits(page)).to_have_text(notes)
    page.get_by_label("Type", exact=True).select_option("Noted")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", name="No results")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_the_filters_are_one_row(visit, alice, notes, width):
    page = visit(alice, "/search?q=antenna&order=newest", viewport={"width": width, "height": 800})
    expect(hits(page)).to_have_count(3)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    boxes = [field.bounding_box() for field in page.locator("#search-filters > span").all()]
    assert len({box["y"] for box in boxes if box}) == 1


def test_a_figure_beside_a_long_label_stays_on_one_line(visit, alice, notes):
    page = visit(alice, "/search?q=zeppelin", viewport={"width": 375, "height": 800})
    best = page.locator(".key-values > div").filter(has_text="Best match, below the relevance threshold")
    lines = best.locator("dd").evaluate(
        "figure => figure.getBoundingClientRect().height / parseFloat(getComputedStyle(figure).lineHeight)"
    )

    assert round(lines) == 1

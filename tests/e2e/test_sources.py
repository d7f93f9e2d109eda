"""The sources of an answer in the browser: cited passages first, opened in place, from the keyboard as well."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn
from tests.server import wait_for

MEMORIES = [
    "The greenhouse key hangs behind the clock in the hall.",
    "The second key to the greenhouse lies in the blue tin on the shelf.",
    "The greenhouse key was copied twice in the spring by the locksmith.",
]
QUESTION = "Where are the keys to the greenhouse?"


@pytest.fixture
def memories(alice, endpoint) -> None:
    """Let Alice say three things about the same key, each in a thread of its own."""
    endpoint.script(KEY, answer="Noted.")
    for message in MEMORIES:
        thread = alice.send_message(message)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")


def excerpts(page: Page, items: str) -> list[str]:
    return turn(page).locator(f"{items} .recall-item__excerpt").all_text_contents()


def test_the_summary_is_replaced_and_cited_passages_move_to_the_front_when_the_answer_is_complete(
    visit, alice, endpoint, memories
):
    page = visit(alice)
    endpoint.script(KEY, answer="Twice copied [3]. One is behind the clock [1], as [3] says.", token_delay=0.2)
    path = begin_thread(page, QUESTION)
    summary = turn(page).locator(".recall__panel > summary")
    expect(summary).to_have_text("3 recalled")
    before = summary.bounding_box()
    items = turn(page).locator(".recall-item")
    in_prompt = [items.nth(n).get_attribute("id") for n in range(3)]

    expect(summary).to_have_text(re.compile(r"Based on 2 sources\s+· 1 more recalled\s+from"))
    after = summary.bounding_box()
    assert before
    assert after
    assert (before["x"], before["y"]) == (after["x"], after["y"])
    expect(page.locator("#live-region")).to_have_text("Cato has answered. Based on 2 sources, 1 more recalled")
    summary.click()
    shown = turn(page).locator(".recall-item:visible")
    expect(shown).to_have_count(2)
    assert [shown.nth(n).get_attribute("id") for n in range(2)] == [in_prompt[2], in_prompt[0]]
    turn(page).locator(".recall__more > summary").click()
    expect(shown).to_have_count(3)
    expect(shown.nth(2).locator(".recall-item__number")).to_be_hidden()
    expect(shown.nth(2)).to_contain_text("Not cited")
    expect(shown.nth(0)).not_to_contain_text("Not cited", use_inner_text=True)

    fresh = visit(alice, path)
    assert excerpts(fresh, ".recall__panel") == excerpts(page, ".recall__panel")


def test_nothing_moves_in_a_panel_that_is_open_when_the_answer_ends(visit, alice, endpoint, memories):
    page = visit(alice)
    endpoint.script(KEY, answer="Twice copied [3].", token_delay=0.4)
    begin_thread(page, QUESTION)
    summary = turn(page).locator(".recall__panel > summary")
    summary.focus()
    page.keyboard.press("Enter")
    items = turn(page).locator(".recall-item:visible")
    expect(items).to_have_count(3)
    before = [items.nth(n).get_attribute("id") for n in range(3)]
    items.nth(1).locator("summary").first.click()
    summary.focus()

    expect(summary).to_contain_text("Based on 1 source")
    expect(summary).to_be_focused()
    assert [items.nth(n).get_attribute("id") for n in range(3)] == before
    expect(items.nth(1).locator("details").first).to_have_attribute("open", "")
    page.keyboard.press("Enter")
    expect(items).to_have_count(0)
    expect(turn(page).locator(".recall__list").first.locator("> .recall-item")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(items).to_have_count(1)
    assert items.first.get_attribute("id") == before[2]


def test_an_answer_without_citations_says_so(visit, alice, endpoint, memories):
    page = visit(alice)
    endpoint.script(KEY, answer="I do not know.", token_delay=0.1)
    path = begin_thread(page, QUESTION)
    expect(turn(page).locator(".recall__panel > summary")).to_have_text("3 recalled, none cited")
    fresh = visit(alice, path)
    for opened in (page, fresh):
        turn(opened).locator(".recall__panel > summary").click()
        expect(turn(opened).locator(".recall-item:visible")).to_have_count(3)
    assert excerpts(fresh, ".recall__panel") == excerpts(page, ".recall__panel")

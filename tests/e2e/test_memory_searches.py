"""Searches of memory by the model in the browser: each is a line that opens to what it found, live and after a reload."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn
from tests.server import wait_for

FACTS = ["The contract with Bergmann ends on 31 March 2027.", "The Bergmann contract is kept in the red folder."]
TASK = "Write a short poem about the sea."


@pytest.fixture
def facts(alice, endpoint) -> None:
    endpoint.script(KEY, answer="Noted.")
    for fact in FACTS:
        thread = alice.send_message(fact)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")


def script(endpoint, *answers: str, queries: list[str], **options: float) -> None:
    calls = [[["search_memory", json.dumps({"query": query, "limit": len(FACTS)})]] for query in queries]
    endpoint.script(KEY, answer=[*answers], calls=calls, **options)


def searches(page: Page):
    return turn(page).locator(".searches")


def test_searches_are_shown_while_the_answer_runs_and_afterwards(visit, alice, endpoint, facts):
    page = visit(alice)
    answer = "It ends in March 2027 [1], by all accounts."
    script(endpoint, "", "", answer, queries=["Bergmann contract", "unicorns"], first_delay=0.8)
    path = begin_thread(page, TASK)

    first = searches(page).locator("summary").first
    expect(first).to_have_text(re.compile(r"Searched memory for “Bergmann contract” · 2 results"))
    expect(turn(page).locator(".recall__panel > summary")).to_have_text("2 recalled")
    first.click()
    expect(searches(page).locator("li")).to_have_count(2)

    expect(turn(page).get_by_text("by all accounts")).to_be_visible()
    expect(turn(page).locator(".recall__panel > summary")).to_have_text(re.compile(r"Based on 1 source\s+· 1 more"))
    expect(searches(page).get_by_text("1 more, not cited")).to_be_attached()
    expect(searches(page).locator("p")).to_have_text(re.compile(r"Searched memory for “unicorns” · no results"))
    expect(page.locator("#live-region")).to_have_text(re.compile("Cato has answered"))
    live = re.sub(r' open=""', "", searches(page).evaluate("node => node.innerHTML"))
    fresh = visit(alice, path)
    assert re.sub(r"\s+", " ", live) == re.sub(r"\s+", " ", searches(fresh).evaluate("node => node.innerHTML"))

    searches(fresh).locator("summary").first.click()
    searches(fresh).get_by_role("link", name="1").click()
    expect(turn(fresh).locator(".recall-item:has(> details[open])")).to_contain_text("Bergmann")


def test_stop_ends_a_search_and_the_copy_of_an_answer_leaves_the_lines_out(visit, alice, endpoint, facts):
    page = visit(alice)
    script(endpoint, "Let me see.", "Never shown.", queries=["Bergmann contract"], first_delay=5)
    begin_thread(page, TASK)
    expect(searches(page)).to_contain_text("Searched memory")
    page.get_by_role("button", name="Stop").click()
    expect(turn(page).get_by_text("Stopped by Alice Owner")).to_be_visible()
    expect(turn(page)).not_to_contain_text("Never shown.")
    expect(searches(page)).to_contain_text("Searched memory for “Bergmann contract” · 2 results")
    assert turn(page).locator(".answer__blocks").inner_text().strip() == "Let me see."


def test_an_answer_that_searched_can_be_regenerated(visit, alice, endpoint, facts):
    page = visit(alice)
    script(endpoint, "", "It ends in March [1].", queries=["Bergmann contract"])
    begin_thread(page, TASK)
    expect(turn(page).locator(".recall__panel > summary")).to_contain_text("Based on 1 source")
    endpoint.script(KEY, answer="No search.")
    turn(page).get_by_role("button", name="Regenerate").click()
    expect(turn(page).get_by_text("No search.")).to_be_visible()
    expect(searches(page)).to_be_hidden()

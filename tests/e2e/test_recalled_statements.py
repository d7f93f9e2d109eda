"""Statements among the sources of an answer in the browser: decided about with the keyboard, in place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import KEY, turn
from tests.groups import make_group
from tests.knowledge import create_statements
from tests.server import Client, wait_for


@pytest.fixture
def answered(cato, administrator, alice, bob, endpoint):
    """Create Alice's statements in a group with Bob; return a function that answers a question with them in a thread."""
    create_statements(cato, alice, make_group(cato, administrator, alice, bob))
    pending = "SELECT count(*) FROM memory_embeddingjob WHERE state = 'pending'"
    wait_for(lambda: not int(cato.sql(pending)[0][0]), "the statements to be indexed")

    def answer(person: Client, question: str) -> str:
        endpoint.script(KEY, answer="It is so [1] [2].")
        thread = person.send_message(question)
        wait_for(lambda: "Remembered</span>" in person.thread_page(thread), "the answer to be remembered")
        return f"/t/{thread}"

    return answer


def open_item(page: Page, text: str) -> Locator:
    """Open the panel and the item of this statement; return the item, whose summary has the focus."""
    turn(page).locator(".recall__panel > summary").click()
    item = turn(page).locator(".recall-item").filter(has_text=text)
    item.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(item.get_by_text("Based on")).to_be_visible()
    return item


def test_statements_are_decided_about_in_the_margin_with_the_keyboard(visit, alice, bob, answered):
    question = "How many retries a day does a buoy make, and what made all six buoys call in step?"
    page = visit(bob, answered(bob, question))
    announced = page.locator("#live-region")
    item = open_item(page, "call in step")
    page.keyboard.press("k")
    expect(announced).to_have_text("Confirmed by you.")
    expect(item).to_contain_text("confirmed by Bob Team")
    expect(item.locator("summary").first).to_be_focused()
    expect(item.get_by_role("button", name="Confirm")).to_have_count(0)

    page.keyboard.press("e")
    text = item.get_by_label("The statement as it should be")
    expect(text).to_be_focused()
    item.get_by_role("button", name="Cancel").press("Enter")
    expect(item.get_by_role("link", name="Correct…")).to_be_focused()
    page.keyboard.press("Enter")
    text.fill("Fixed intervals made seven buoys call in step.")
    item.get_by_role("button", name="Save").press("Enter")
    expect(announced).to_have_text("Superseded by your statement.")
    expect(item.get_by_text("Superseded by your statement.")).to_be_focused()
    expect(item).to_contain_text("seven buoys")

    page = visit(alice, answered(alice, question))
    item = open_item(page, "28 retries")
    page.keyboard.press("f")
    expect(item.get_by_label("Also forget its sources that are yours")).to_be_focused()
    item.get_by_role("button", name="Forget it").press("Enter")
    expect(page.locator("#live-region")).to_have_text("Forgotten")
    expect(turn(page).locator(".recall")).not_to_contain_text("28 retries")
    expect(turn(page).locator(".recall")).to_contain_text("Forgotten")


def test_a_conflict_leads_to_the_page_of_statements(visit, bob, answered):
    page = visit(bob, answered(bob, "Is the lid 3 mm thinner now?"))
    item = open_item(page, "3 mm thinner")

    item.get_by_role("link", name="Resolve…").click()

    lid = page.locator(".statement").filter(has=page.locator(".statement__text", has_text="3 mm thinner"))
    expect(lid.get_by_role("button", name="Keep this one")).to_be_in_viewport()

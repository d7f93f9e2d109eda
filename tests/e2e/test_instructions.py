"""An instruction said in German is recognised, applied, kept, changed and deleted, and stands in the prompts meanwhile."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, tab_to, turn, wait_for_answer

SENTENCE = "Antworte mir ab jetzt bitte immer in höchstens drei Sätzen."


def last_system_prompt(endpoint) -> str:
    streamed = [request for request in endpoint.requests(KEY) if request.get("stream")]
    return str(streamed[-1]["messages"][0]["content"])


def ask(page: Page, message: str) -> None:
    send_message(page, message)
    expect(turn(page)).to_contain_text(message)
    expect(turn(page).locator(".turn__memory-text")).to_have_text(re.compile("Remember"))


def test_an_instruction_is_told_in_german_applied_kept_changed_and_deleted(visit, alice, endpoint):
    page = visit(alice)
    thread = begin_thread(page, SENTENCE)
    offer = turn(page, 0).locator(".offer")
    expect(offer).to_contain_text(SENTENCE)
    expect(offer).to_contain_text("Applies in your threads until you dismiss it.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text(re.compile("Remember"))
    assert SENTENCE not in last_system_prompt(endpoint)

    ask(page, "Wie weit ist es nach Kiel?")
    assert last_system_prompt(endpoint).startswith(
        f"Follow these standing instructions in every answer:\n- {SENTENCE}\n"
    )
    panel = turn(page).locator(".applied-instructions")
    expect(panel).to_contain_text("1 instruction")
    panel.locator("summary").click()
    expect(panel.locator(".applied-instructions__text")).to_have_text(SENTENCE)

    keep = offer.get_by_role("button", name="Keep for me")
    keep.focus()
    page.keyboard.press("Enter")
    expect(turn(page, 0).get_by_role("status")).to_contain_text("Kept for you.")
    turn(page, 0).get_by_role("link", name="Instructions").click()
    page.wait_for_url("**/instructions")
    row = page.locator(".instruction")
    expect(row).to_contain_text(SENTENCE)

    row.get_by_role("link", name="Edit").click()
    page.get_by_label("Instruction", exact=True).fill("Antworte in höchstens zwei Sätzen.")
    page.get_by_role("button", name="Save").click()
    expect(row.locator(".instruction__text")).to_have_text("Antworte in höchstens zwei Sätzen.")
    page.goto(thread)
    ask(page, "Und nach Bremen?")
    assert "- Antworte in höchstens zwei Sätzen.\n" in last_system_prompt(endpoint)
    assert SENTENCE not in last_system_prompt(endpoint)

    page.goto("/instructions")
    row.get_by_role("link", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No instructions yet")).to_be_visible()
    page.goto(thread)
    ask(page, "Und nach Hamburg?")
    assert "standing instructions" not in last_system_prompt(endpoint)
    expect(turn(page).locator(".applied-instructions")).to_have_count(0)


def test_the_page_works_with_the_keyboard_and_without_scripts(visit, alice):
    page = visit(alice, "/instructions", java_script_enabled=False)
    page.get_by_label("New instruction").fill("Always answer in metric units.")
    page.keyboard.press("Enter")
    switch = page.get_by_role("switch", name="Always answer in metric units.")
    expect(switch).to_be_checked()
    tab_to(page, switch)
    page.keyboard.press("Space")
    expect(page.get_by_text("Off since")).to_be_visible()
    expect(switch).not_to_be_checked()

    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No instructions yet")).to_be_visible()


def test_an_instruction_is_turned_off_in_one_thread(visit, alice, endpoint):
    page = visit(alice, "/instructions")
    page.get_by_label("New instruction").fill("Always answer in metric units.")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("switch")).to_be_checked()
    page.goto("/")
    begin_thread(page, "How far is it to Kiel?")
    wait_for_answer(page)
    panel = turn(page).locator(".applied-instructions")
    panel.locator("summary").click()
    panel.get_by_role("button", name="Turn off in this thread").click()
    expect(panel.get_by_role("status")).to_have_text("Off in this thread.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text(re.compile("Remember"))

    ask(page, "And to Bremen?")
    assert "metric" not in last_system_prompt(endpoint)

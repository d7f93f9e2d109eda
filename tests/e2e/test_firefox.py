"""The main flows in Firefox: ask, stop, recall, attach, upload, search, forget and the menu of a thread."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, Visit, begin_thread, send_message, turn, wait_for_answer
from tests.e2e.test_forget_everywhere import open_dialog

FACT = "The greenhouse key hangs behind the clock in the hall."
VALVE = {"name": "Valve.md", "mimeType": "text/markdown", "buffer": b"# Valve\n\nThe valve opens at 4.2 bar.\n"}


@pytest.fixture
def visit(visit_firefox: Visit) -> Visit:
    """Open pages in Firefox instead of Chromium."""
    return visit_firefox


@pytest.fixture
def thread(visit, alice) -> Page:
    """Return the page of a thread whose first message is remembered."""
    page = visit(alice)
    begin_thread(page, FACT)
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    return page


def test_an_answer_streams_and_another_is_stopped(visit, alice, endpoint):
    endpoint.script(KEY, answer="Water **now**.\n\nThen close the tap again, slowly.", token_delay=0.4)
    page = visit(alice)
    begin_thread(page, "How do we water?")
    expect(turn(page).locator(".answer__streaming--live")).to_be_visible()
    expect(turn(page).locator(".answer__blocks strong")).to_have_text("now")
    wait_for_answer(page)

    endpoint.script(KEY, tokens=400, token_delay=0.05)
    send_message(page, "Tell me everything")
    expect(turn(page).locator(".answer__streaming--live")).to_be_visible()
    page.get_by_role("button", name="Stop the answer").click()
    expect(turn(page).locator(".turn__status-text")).to_have_text("Stopped by Alice Owner")


def test_a_fact_is_recalled_and_its_citation_opens_in_place(thread, endpoint):
    thread.goto("/")
    endpoint.script(KEY, answer="Behind the clock [1].")
    begin_thread(thread, "Where do we keep the thing that opens the glass house?")
    turn(thread).locator("a.citation").click()
    expect(turn(thread).locator(".source-card .recall-item__text")).to_contain_text("in the hall")
    expect(turn(thread).locator("a.citation")).to_have_attribute("aria-expanded", "true")
    assert "#" not in thread.url
    thread.keyboard.press("Escape")
    expect(turn(thread).locator(".source-card")).to_be_hidden()


def test_a_file_is_attached_and_a_document_uploaded(visit, alice):
    page = visit(alice)
    page.locator("#files").set_input_files(VALVE)
    expect(page.locator(".chip--attached")).to_contain_text("Valve.md")
    begin_thread(page, "At what pressure does it open?")
    expect(turn(page).get_by_role("link", name="Valve.md")).to_be_visible()
    page.goto("/documents")
    page.locator("#files").set_input_files({**VALVE, "name": "Seal.md", "buffer": b"The seal is made of copper."})
    row = page.locator(".document-row").filter(has_text="Seal.md")
    expect(row.locator(".memory-icon--remembered")).to_be_visible()


def test_a_search_is_filtered_while_one_types(thread):
    thread.goto("/search")
    thread.get_by_role("searchbox", name="Search memory").fill("greenhouse")
    expect(thread.locator(".search-hit__title a")).to_have_count(1)
    thread.get_by_label("Type", exact=True).select_option("Documents")
    expect(thread.get_by_role("heading", name="No results")).to_be_visible()
    assert re.search("[?&]q=greenhouse", thread.url)


def test_a_message_is_forgotten_after_a_dialog_and_keys_open_the_menu_of_its_thread(thread):
    open_dialog(thread)
    expect(thread.locator("#dialog").get_by_role("link", name="Cancel")).to_be_focused()
    thread.locator("#dialog").get_by_role("button", name="Forget everywhere").click()
    expect(thread.locator(".receipt")).to_be_focused()
    expect(thread.locator("#main")).not_to_contain_text("behind the clock")

    # Without a mouse, this Firefox shows a list as touch screens do.
    expect(thread.locator("#threads-today .sidebar__muted-mark").first).to_be_hidden()
    # In one step: a change of the list would replace the link, and with it the focus.
    thread.locator("#threads-today a").first.press("Shift+F10")
    expect(thread.get_by_role("button", name="Pin")).to_be_focused()
    thread.keyboard.press("Enter")
    expect(thread.locator(".toast")).to_contain_text("Pinned for you.")

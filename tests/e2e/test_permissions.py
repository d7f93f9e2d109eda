"""Buttons on a message: changes for its author and the owner of the thread, everything else for all readers."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, turn
from tests.groups import make_group, start_thread

CHANGES = "[data-author-only]"


def test_only_the_author_and_the_owner_see_buttons_that_change_a_message(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    bobs_page = visit(bob, f"/t/{thread}")
    expect(turn(bobs_page, 0).locator(".answer__blocks")).to_have_text("All right.")
    expect(turn(bobs_page, 0).locator("[title='Copy']")).to_be_visible()
    expect(turn(bobs_page, 0).locator(f"{CHANGES}:visible")).to_have_count(0)

    # A turn that arrives while the page is open, and the same turn after a reload.
    send_message(bobs_page, "And the spare one?")
    expect(turn(bobs_page, 1).locator(".answer__blocks")).to_have_text("All right.")
    expect(turn(bobs_page, 1).get_by_title("Regenerate")).to_be_visible()
    alices_page = visit(alice, f"/t/{thread}")
    for number in (0, 1):
        expect(turn(alices_page, number).get_by_title("Regenerate")).to_be_visible()
    send_message(alices_page, "Thanks")
    expect(turn(bobs_page, 2).locator(".answer__blocks")).to_have_text("All right.")
    expect(turn(bobs_page, 2).locator(f"{CHANGES}:visible")).to_have_count(0)
    turn(bobs_page, 0).get_by_title("More", exact=True).click()
    expect(turn(bobs_page, 0).get_by_text("Fork into a new thread")).to_be_visible()
    expect(turn(bobs_page, 0).get_by_text("Edit message…")).to_be_hidden()


def test_messages_above_the_limit_are_queued_with_a_reason(cato, alice, endpoint, visit):
    endpoint.script("cato", answer="word " * 60, token_delay=0.3)
    threads = [alice.send_message(f"Question {number}") for number in range(3)]
    page = visit(alice)
    begin_thread(page, "Question 3")
    expect(turn(page)).to_contain_text("Alice Owner already has 3 answers in progress")
    stop = visit(alice, f"/t/{threads[0]}")
    endpoint.script("cato", answer="All right.")
    stop.get_by_label("Stop the answer").click()
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")


def test_related_threads_open_in_a_panel(cato, alice, endpoint, visit):
    endpoint.script("cato", answer="The key of the archive hangs behind the boiler room's door.")
    first = visit(alice)
    begin_thread(first, "Where does the key of the archive hang?")
    expect(turn(first).locator(".turn__memory-text")).to_have_text("Remembered")
    page = visit(alice)
    begin_thread(page, "Who has the key of the archive?")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    page.get_by_title("This thread").click()
    page.get_by_text("Related threads…").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("link", name="Where does the key of the archive hang?")).to_be_visible()

"""Buttons on a message: changes for its author and the owner of the thread, everything else for all readers."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, turn
from tests.groups import make_group, start_thread

CHANGES = "[data-for]"


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


def test_an_author_loses_the_buttons_that_would_hide_what_somebody_else_writes(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    bobs_page, alices_page = visit(bob, f"/t/{thread}"), visit(alice, f"/t/{thread}")
    send_message(bobs_page, "And the spare one?")
    expect(turn(bobs_page, 1).get_by_title("Regenerate")).to_be_visible()

    send_message(alices_page, "Thanks")
    expect(turn(bobs_page, 2).locator(".answer__blocks")).to_have_text("All right.")
    expect(turn(bobs_page, 1).get_by_title("Copy", exact=True)).to_be_visible()
    expect(turn(bobs_page, 1).get_by_title("Regenerate")).to_be_hidden()
    expect(turn(alices_page, 1).get_by_title("Regenerate")).to_be_visible()


def test_any_reader_stops_an_answer_and_the_turn_names_them(cato, administrator, alice, bob, endpoint, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    alices_page, bobs_page = visit(alice, f"/t/{thread}"), visit(bob, f"/t/{thread}")
    expect(turn(alices_page).locator(".answer__blocks")).to_have_text("All right.")
    endpoint.script("cato", tokens=3000, token_delay=0.02)
    send_message(alices_page, "Count as far as you can")
    own = alices_page.get_by_role("button", name="Stop the answer")
    others = bobs_page.get_by_role("button", name="Stop Alice Owner’s answer")
    expect(own).to_be_visible()
    expect(alices_page.locator(".composer__hint")).to_have_text("Esc to stop")
    expect(bobs_page.locator(".composer__hint")).to_have_text("Stop Alice Owner’s answer")
    expect(turn(bobs_page)).to_contain_text("word3")

    # A message of one's own waits; only its author can withdraw it.
    send_message(bobs_page, "And then?")
    withdraw = bobs_page.get_by_role("button", name="Withdraw message")
    expect(withdraw).to_be_visible()
    expect(turn(alices_page)).to_contain_text("Queued until the previous answer ends")
    expect(alices_page.locator("#queue")).to_contain_text("And then?")
    expect(alices_page.get_by_role("button", name="Withdraw message")).to_have_count(0)
    withdraw.click()
    expect(turn(bobs_page)).to_contain_text("Count as far as you can")

    # Escape is for one's own answer: here it presses nothing.
    requests: list[str] = []
    bobs_page.on("request", lambda request: requests.append(request.url))
    bobs_page.keyboard.press("Escape")
    others.click()
    for page in (alices_page, bobs_page):
        expect(turn(page).locator(".turn__status-text")).to_have_text("Stopped by Bob Team")
    assert [url for url in requests if url.endswith("/stop")] == requests[:1]
    expect(turn(alices_page).get_by_text("Resume answer")).to_be_visible()
    expect(turn(bobs_page).get_by_text("Resume answer")).to_be_hidden()


def test_messages_above_the_limit_are_queued_with_a_reason(cato, alice, endpoint, visit):
    endpoint.script("cato", answer="word " * 60, token_delay=0.3)
    threads = [alice.send_message(f"Question {number}") for number in range(3)]
    page = visit(alice)
    begin_thread(page, "Question 3")
    expect(turn(page)).to_contain_text("Alice Owner already has 3 answers in progress")
    stop = visit(alice, f"/t/{threads[0]}")
    endpoint.script("cato", answer="All right.")
    stop.get_by_role("button", name="Stop the answer").click()
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

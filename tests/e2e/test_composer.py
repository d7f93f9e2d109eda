"""The composer: messages appear at once, and no text is lost when the connection fails."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn


def composer(page):
    return page.get_by_label("Message", exact=True)


def test_a_message_appears_while_it_is_sent_and_only_once_afterwards(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    held_requests: list[Route] = []
    page.route("**/say", lambda route: held_requests.append(route))
    send_message(page, "A second one, on a slow line")

    expect(turn(page)).to_contain_text("Sending…")
    expect(turn(page).locator(".turn__message-text")).to_have_text("A second one, on a slow line")
    expect(composer(page)).to_have_value("")
    held_requests[0].continue_()
    expect(page.get_by_text("Sending…")).to_have_count(0)
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
    expect(page.locator("article.turn")).to_have_count(2)


def test_an_unsent_message_returns_to_the_composer_before_newer_text(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    held_requests: list[Route] = []
    page.route("**/say", lambda route: held_requests.append(route))
    send_message(page, "Do not lose me")
    composer(page).fill("and this neither")
    expect(turn(page)).to_contain_text("Sending…")
    held_requests[0].abort()

    expect(composer(page)).to_have_value("Do not lose me\nand this neither")
    expect(page.get_by_role("alert").filter(has_text="Message not sent.")).to_be_visible()
    page.unroute("**/say")
    page.get_by_role("button", name="Retry").click()
    expect(turn(page).locator(".turn__message-text")).to_have_text("Do not lose me\nand this neither")
    expect(page.locator("article.turn")).to_have_count(2)
    expect(page.get_by_role("alert").filter(has_text="Message not sent.")).to_have_count(0)


def test_a_message_being_sent_survives_a_reload(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    page.route("**/say", lambda route: None)
    send_message(page, "Sent into nothing")
    expect(turn(page)).to_contain_text("Sending…")
    page.reload()

    expect(composer(page)).to_have_value("Sent into nothing")


def test_offline_the_page_explains_why_nothing_is_sent_and_keeps_the_text(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    expect(turn(page).locator(".turn__actions")).to_be_visible()
    page.context.set_offline(True)
    expect(page.get_by_role("status").filter(has_text="You are offline")).to_be_visible()
    send_message(page, "Written on a train")
    expect(composer(page)).to_have_value("Written on a train")
    expect(page.locator("article.turn")).to_have_count(1)

    page.context.set_offline(False)
    expect(page.get_by_role("status").filter(has_text="You are offline")).to_have_count(0)
    composer(page).press("Enter")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")


def test_a_queued_message_is_withdrawn_into_the_composer(visit, alice, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer this one.", token_delay=0.3)
    page = visit(alice)
    begin_thread(page, "First")
    send_message(page, "Second thoughts")
    expect(turn(page)).to_contain_text("Queued until the previous answer ends")
    page.get_by_role("button", name="Withdraw message").click()

    expect(page.locator("article.turn")).to_have_count(1)
    expect(composer(page)).to_have_value("Second thoughts")
    expect(composer(page)).to_be_focused()


def test_memory_can_be_disabled_before_the_first_message(visit, alice, cato):
    page = visit(alice)
    page.get_by_role("switch").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Not remembered", exact=True)).to_be_visible()
    path = begin_thread(page, "My PIN is 8253")
    expect(turn(page).locator(".turn__actions")).to_be_visible()

    expect(page.get_by_role("switch", name="Not remembered")).to_have_attribute("aria-checked", "false")
    expect(page.locator(f"a[href='{path}']")).to_have_class(re.compile(r"^sidebar__link sidebar__link--unsaved\s*$"))


def test_disabling_memory_asks_what_to_do_with_stored_exchanges(visit, alice):
    page = visit(alice)
    begin_thread(page, "The key hangs behind the clock")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    page.get_by_role("switch").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 exchange is in memory and can still be recalled.")
    dialog.get_by_role("button", name="Stop saving and forget 1").click()

    expect(page.get_by_text("1 exchange forgotten.")).to_be_visible()
    expect(turn(page).locator(".recall")).to_contain_text("Forgotten")
    expect(page.get_by_role("switch", name="Not remembered")).to_be_visible()


def test_a_thread_forked_from_the_menu_can_be_continued(visit, alice):
    page = visit(alice)
    first = begin_thread(page, "The key hangs behind the clock")
    expect(turn(page).locator(".turn__actions")).to_be_visible()
    turn(page).locator("summary", has_text="More").click()
    page.get_by_role("button", name="Fork into a new thread").click()
    page.wait_for_url(lambda url: "/t/" in url and first not in url)

    expect(turn(page).locator(".turn__message-text")).to_have_text("The key hangs behind the clock")
    send_message(page, "And the boat?")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")
    page.goto(first)
    expect(page.locator("article.turn")).to_have_count(1)

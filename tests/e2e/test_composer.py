"""The composer: messages appear at once, and no text is lost when the connection fails."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer


def composer(page):
    return page.get_by_label("Message", exact=True)


def test_a_message_appears_while_it_is_sent_and_only_once_afterwards(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    held_requests: list[Route] = []
    page.route("**/messages", lambda route: held_requests.append(route))
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
    page.route("**/messages", lambda route: held_requests.append(route))
    send_message(page, "Do not lose me")
    composer(page).fill("and this neither")
    expect(turn(page)).to_contain_text("Sending…")
    held_requests[0].abort()

    expect(composer(page)).to_have_value("Do not lose me\nand this neither")
    expect(page.get_by_role("alert").filter(has_text="Message not sent.")).to_be_visible()
    page.unroute("**/messages")
    page.get_by_role("button", name="Retry").click()
    expect(turn(page).locator(".turn__message-text")).to_have_text("Do not lose me\nand this neither")
    expect(page.locator("article.turn")).to_have_count(2)
    expect(page.get_by_role("alert").filter(has_text="Message not sent.")).to_have_count(0)


@pytest.mark.parametrize(
    ("outcome", "draft", "messages"),
    [
        ("continue_", "Second, and the rest of it", ["First", "On a slow line"]),
        ("abort", "On a slow line\nSecond, and the rest of it", ["First"]),
    ],
)
def test_a_message_is_not_sent_before_the_one_before_it(visit, alice, outcome, draft, messages):
    page = visit(alice)
    begin_thread(page, "First")
    held_requests: list[Route] = []
    page.route("**/messages", lambda route: held_requests.append(route))
    send_message(page, "On a slow line")
    expect(turn(page)).to_contain_text("Sending…")
    composer(page).fill("Second")
    composer(page).press("Enter")
    composer(page).press_sequentially(", and the rest of it")
    getattr(held_requests[0], outcome)()

    expect(page.locator("#composer.htmx-request")).to_have_count(0)
    expect(page.locator(".turn__message-text")).to_have_text(messages)
    expect(composer(page)).to_have_value(draft)
    page.unroute("**/messages")
    composer(page).press("Enter")
    expect(page.locator(".turn__message-text")).to_have_text([*messages, draft])


def test_a_response_that_arrives_after_its_answer_has_ended_leaves_nothing_to_stop(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    wait_for_answer(page)
    held_requests: list[Route] = []
    page.route("**/messages", lambda route: held_requests.append(route))
    send_message(page, "On a slow line")
    expect(turn(page)).to_contain_text("Sending…")
    response = held_requests[0].fetch()
    assert "send-button--stop" in response.text()
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")
    expect(page.locator(".send-button--stop")).to_have_count(0)
    held_requests[0].fulfill(response=response)

    expect(page.locator("#composer.htmx-request")).to_have_count(0)
    expect(page.locator(".send-button--stop")).to_have_count(0)


def test_a_message_follows_the_one_before_it_unless_it_was_changed(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    held_requests: list[Route] = []
    page.route("**/messages", lambda route: held_requests.append(route), times=1)
    send_message(page, "On a slow line")
    expect(turn(page)).to_contain_text("Sending…")
    composer(page).fill("Second")
    composer(page).press("Enter")
    expect(composer(page)).to_have_value("Second")
    held_requests[0].continue_()

    expect(page.locator(".turn__message-text")).to_have_text(["First", "On a slow line", "Second"])
    expect(composer(page)).to_have_value("")


def test_a_message_being_sent_survives_a_reload(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    page.route("**/messages", lambda route: None)
    send_message(page, "Sent into nothing")
    expect(turn(page)).to_contain_text("Sending…")
    page.reload()

    expect(composer(page)).to_have_value("Sent into nothing")


def test_offline_the_page_explains_why_nothing_is_sent_and_keeps_the_text(visit, alice):
    page = visit(alice)
    begin_thread(page, "First")
    wait_for_answer(page)
    page.context.set_offline(True)
    expect(page.get_by_role("status").filter(has_text="You are offline")).to_be_visible()
    send_message(page, "Written on a train")
    expect(composer(page)).to_have_value("Written on a train")
    expect(page.locator("article.turn")).to_have_count(1)

    page.context.set_offline(False)
    expect(page.get_by_role("status").filter(has_text="You are offline")).to_have_count(0)
    composer(page).press("Enter")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")


def test_a_queued_message_is_edited_in_the_composer(visit, alice, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer this one. " * 20, token_delay=0.3)
    page = visit(alice)
    begin_thread(page, "First")
    expect(composer(page)).to_have_attribute("placeholder", "Ask a follow-up; it will be queued")
    page.locator("#files").set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"About a boat"})
    expect(page.locator("#chips .chip--attached")).to_be_visible()
    send_message(page, "Second thoughts")
    expect(page.locator("#chips .chip")).to_have_count(0)
    expect(turn(page)).to_contain_text("Queued until the previous answer ends")
    page.get_by_role("button", name="Edit message").click()

    expect(page.locator("article.turn")).to_have_count(1)
    expect(composer(page)).to_have_value("Second thoughts")
    expect(composer(page)).to_be_focused()
    expect(page.locator("#chips .chip")).to_have_count(1)
    page.get_by_role("button", name="Stop the answer").click()
    expect(composer(page)).to_have_attribute("placeholder", "Ask, or type / for commands")
    send_message(page, "And now?")
    expect(composer(page)).to_have_attribute("placeholder", "Ask a follow-up; it will be queued")


def test_a_queued_message_is_in_the_queue_only_also_in_a_narrow_window(visit, alice, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer this one. " * 20, token_delay=0.3)
    page = visit(alice, viewport={"width": 390, "height": 844})
    begin_thread(page, "First")
    page.get_by_label("Message", exact=True).fill("Second")
    page.get_by_role("button", name="Send").click()

    expect(page.get_by_text("Second").filter(visible=True)).to_have_class("queue__text")
    page.get_by_role("button", name="Stop the answer").click()
    expect(turn(page).locator(".turn__message-text")).to_be_visible()


@pytest.mark.parametrize("width", [375, 1280])
def test_a_toast_covers_nothing_of_a_draft_with_several_lines(visit, alice, width):
    page = visit(alice, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    begin_thread(page, "First")
    composer(page).fill("\n".join(f"Line {number}" for number in range(8)))
    turn(page).get_by_role("button", name="Copy the answer").click()
    toast = page.locator(".toast").bounding_box()

    assert toast["y"] + toast["height"] <= page.locator("#composer").bounding_box()["y"]


def queued_texts(page):
    return page.locator(".queue__text")


def test_queued_messages_are_moved_edited_and_withdrawn_in_every_page(visit, alice, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer this one. " * 20, token_delay=0.3)
    page = visit(alice)
    path = begin_thread(page, "First")
    for text in ("Second", "Third", "Fourth"):
        send_message(page, text)
        expect(page.locator("article.turn").last).to_contain_text(text)
    expect(page.locator("#live-region")).to_have_text("Queued, position 3")
    expect(page.locator(".queue__place")).to_have_text(["Next", "Then", "Then"])
    other = visit(alice, path)
    expect(page.get_by_role("button", name="Move up")).to_have_count(2)

    page.get_by_role("listitem").filter(has_text="Third").get_by_role("button", name="Move up").press("Enter")
    expect(page.locator("#live-region")).to_have_text("Queued, position 1")
    # The first message cannot be moved, so the focus goes to the next button.
    third = page.get_by_role("listitem").filter(has_text="Third")
    expect(third.get_by_role("button", name="Edit message")).to_be_focused()
    for open_page in (page, other):
        expect(queued_texts(open_page)).to_have_text(["Third", "Second", "Fourth"])
        messages = open_page.locator(".turn__message-text")
        expect(messages).to_have_text(["First", "Third", "Second", "Fourth"])
    other.reload()
    expect(queued_texts(other)).to_have_text(["Third", "Second", "Fourth"])
    expect(other.locator(".turn__message-text")).to_have_text(["First", "Third", "Second", "Fourth"])

    other.get_by_role("listitem").filter(has_text="Second").get_by_role("button", name="Withdraw message").click()
    for open_page in (page, other):
        expect(queued_texts(open_page)).to_have_text(["Third", "Fourth"])
    expect(composer(other)).to_have_value("")
    endpoint.script(KEY, answer="Done.")
    page.get_by_role("button", name="Stop the answer").click()
    for open_page in (page, other):
        expect(open_page.locator("#queue")).to_be_hidden()
        expect(open_page.locator(".turn__actions")).to_have_count(3)


def test_memory_can_be_disabled_before_the_first_message(visit, alice, cato):
    page = visit(alice)
    page.get_by_role("switch").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Not remembered", exact=True)).to_be_visible()
    path = begin_thread(page, "My PIN is 8253")
    wait_for_answer(page)

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
    wait_for_answer(page)
    turn(page).locator("summary", has_text="More").click()
    page.get_by_role("button", name="Fork into a new thread").click()
    page.wait_for_url(lambda url: "/t/" in url and first not in url)

    expect(turn(page).locator(".turn__message-text")).to_have_text("The key hangs behind the clock")
    send_message(page, "And the boat?")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")
    page.goto(first)
    expect(page.locator("article.turn")).to_have_count(1)


def test_a_document_chosen_after_an_at_sign_limits_recall(visit, alice, tmp_path):
    documents = visit(alice, "/documents")
    path = tmp_path / "Winter deployment.txt"
    path.write_text("Check the radio below 3.6 V. " * 20)
    documents.set_input_files("input[type=file]", path)
    expect(documents.locator(".chip").filter(has_text=path.name)).to_contain_text("Remembered")
    page = visit(alice)
    composer(page).press_sequentially("What does @deplo")
    option = page.get_by_role("option", name="Winter deployment.txt")
    expect(option.locator("b")).to_have_text("deplo")
    expect(page.get_by_role("group", name="People")).to_be_hidden()
    expect(page.locator("#mention-menu .composer-list__foot")).to_contain_text("close, keep text")
    composer(page).press("Enter")
    expect(composer(page)).to_have_value("What does ")
    expect(page.locator("#recall-filter")).to_contain_text("Recall limited to Winter deployment.txt")

    thread = begin_thread(page, "say about the radio?")
    expect(page.locator("#recall-filter")).to_contain_text("Recall limited to Winter deployment.txt")
    expect(page.locator("#recall-filter .chip use").first).to_have_attribute("href", "#i-eye")
    expect(page.get_by_role("link", name="Limit recall…")).to_be_hidden()
    page.get_by_role("button", name="Remove the limit of recall").press("Enter")
    expect(page.get_by_role("link", name="Limit recall…")).to_be_visible()
    expect(composer(page)).to_be_focused()
    composer(page).press_sequentially("@win")
    option.click()
    expect(page.locator("#recall-filter")).to_contain_text("Recall limited to Winter deployment.txt")
    expect(composer(page)).to_have_value("")
    page.goto(thread)
    expect(page.locator("#recall-filter")).to_contain_text("Recall limited to Winter deployment.txt")

"""Requests that fail: the page says so and stays as it is, and nothing that was typed is lost."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import begin_thread, send_message, turn, wait_for_answer
from tests.server import PASSWORD


def answered_thread(page: Page) -> str:
    """Begin a thread and wait for its answer; return the thread's path."""
    path = begin_thread(page, "First")
    wait_for_answer(page)
    return path


def regenerate(page: Page) -> None:
    turn(page).get_by_role("button", name="Regenerate").click()


def toast(page: Page, text: str):
    return page.locator("#toasts .toast").filter(has_text=text)


def forget_menu(page: Page):
    turn(page).locator("summary").filter(has_text="More").click()
    return turn(page).get_by_role("link", name="Forget…")


def test_a_refused_request_says_why(visit, alice):
    page = visit(alice)
    answered_thread(page)
    page.context.clear_cookies(name="cato_csrf")

    regenerate(page)

    expect(toast(page, "This page is out of date.")).to_be_visible()
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")


def test_a_request_without_a_response_says_so(visit, alice):
    page = visit(alice)
    answered_thread(page)
    page.route("**/regenerate", lambda route: route.abort())

    regenerate(page)

    expect(toast(page, "That did not work.")).to_be_visible()


def test_a_message_without_a_login_leads_to_the_sign_in_page_and_back(visit, alice):
    page = visit(alice)
    path = answered_thread(page)
    page.context.clear_cookies(name="cato_session")

    send_message(page, "Written after the login had ended")

    page.wait_for_url(re.compile("/sign-in"))
    page.fill("[name=email]", alice.email)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**{path}")


def test_a_file_attached_without_a_login_is_not_taken_for_stored(visit, alice, tmp_path):
    page = visit(alice)
    answered_thread(page)
    page.context.clear_cookies(name="cato_session")
    (tmp_path / "notes.txt").write_text("The pump is in room 4.")

    page.locator("#files").set_input_files(tmp_path / "notes.txt")

    expect(page.locator("#chips .chip--failed")).to_contain_text("Not uploaded. Attach it again.")


def test_text_typed_while_a_thread_begins_is_in_the_composer_of_its_page(visit, alice):
    page = visit(alice)
    held: list[Route] = []
    page.route("**/", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    send_message(page, "The first message")
    expect(turn(page)).to_contain_text("Sending…")
    page.get_by_label("Message", exact=True).fill("and already the second")
    held[0].continue_()

    page.wait_for_url("**/t/*")
    wait_for_answer(page)
    expect(page.get_by_label("Message", exact=True)).to_have_value("and already the second")
    page.goto("/")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")


def test_a_double_click_opens_a_dialog(visit, alice):
    page = visit(alice)
    path = answered_thread(page)

    page.get_by_role("link", name="Limit recall…").dblclick(force=True)

    expect(page.get_by_role("dialog").get_by_role("heading")).to_be_visible()
    assert urlsplit(page.url).path == path


def test_a_dialog_that_cannot_be_loaded_leaves_the_page_with_its_text(visit, alice):
    page = visit(alice)
    path = answered_thread(page)
    page.get_by_label("Message", exact=True).fill("Half written")
    page.route("**/forget*", lambda route: route.abort())

    forget_menu(page).click()

    expect(toast(page, "That did not work.")).to_be_visible()
    assert urlsplit(page.url).path == path
    expect(page.get_by_label("Message", exact=True)).to_have_value("Half written")


def test_the_row_of_a_document_that_was_deleted_meanwhile_disappears(visit, alice, cato):
    page = visit(alice, "/documents")
    page.route("**/row*", lambda route: route.fulfill(status=404, body="<main>Not found</main>"))
    file = {"name": "A.md", "mimeType": "text/plain", "buffer": b"# A\n\nText."}
    with page.expect_response("**/row*"):
        page.set_input_files("#upload-form input[type=file]", file)

    expect(page.locator("#chips .chip")).to_have_count(0)
    expect(page.get_by_text("Not found")).to_have_count(0)

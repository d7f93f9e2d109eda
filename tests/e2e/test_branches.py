"""Editing messages and switching between versions in the browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.groups import make_group, start_thread


def test_an_edited_message_gets_a_new_answer_and_the_first_version_stays_available(visit, alice, cato, endpoint):
    endpoint.script(KEY, answer=["Behind the clock.", "Under the mat.", "In the birch.", "On the hook."])
    page = visit(alice)
    path = begin_thread(page, "Where is the key to the greenhouse?")
    expect(turn(page).locator(".answer")).to_contain_text("Behind the clock.")
    send_message(page, "And the other one?")
    expect(turn(page, 1).locator(".answer")).to_contain_text("Under the mat.")
    elsewhere = visit(alice, path, url=cato.other_url)

    turn(page, 0).locator(".menu summary").click()
    turn(page, 0).get_by_role("link", name="Edit message…").click()
    page.locator("#edited").fill("Where is the key to the sauna?")
    page.locator("dialog").get_by_role("button", name="Send").click()

    expect(page.locator("article.turn")).to_have_count(1)
    expect(turn(page).locator(".answer")).to_contain_text("In the birch.")
    expect(turn(page).locator(".turn__branch")).to_contain_text("2 of 2")
    expect(elsewhere.locator("article.turn")).to_have_count(1)
    expect(turn(elsewhere).locator(".answer")).to_contain_text("In the birch.")

    turn(page).get_by_role("button", name="Show previous version").click()
    expect(page.locator("article.turn")).to_have_count(2)
    expect(turn(page, 0).locator(".answer")).to_contain_text("Behind the clock.")
    expect(turn(page, 1).locator(".answer")).to_contain_text("Under the mat.")
    expect(turn(elsewhere, 1).locator(".answer")).to_contain_text("Under the mat.")

    turn(page, 1).get_by_role("button", name="Regenerate").click()
    expect(turn(page, 1).locator(".answer")).to_contain_text("On the hook.")
    expect(turn(page, 1).locator(".turn__branch")).to_contain_text("2 of 2")


def test_the_focus_stays_on_the_button_that_switches_versions(visit, alice, endpoint):
    endpoint.script(KEY, answer=["One.", "Two.", "Three."])
    page = visit(alice)
    begin_thread(page, "How many boats are there?")
    wait_for_answer(page)
    for number, answer in ((2, "Two."), (3, "Three.")):
        turn(page).get_by_role("button", name="Regenerate").click()
        expect(turn(page).locator(".answer")).to_contain_text(answer)
        expect(turn(page).locator(".turn__branch")).to_contain_text(f"{number} of {number}")

    previous = turn(page).get_by_role("button", name="Show previous version")
    previous.focus()
    for number, answer in ((2, "Two."), (1, "One.")):
        page.keyboard.press("Enter")
        expect(turn(page).locator(".turn__branch")).to_contain_text(f"{number} of 3")
        expect(turn(page).locator(".answer")).to_contain_text(answer)
        expect(previous).to_be_focused()
    expect(previous).to_have_attribute("aria-disabled", "true")


def test_by_keyboard_the_focus_stays_at_the_turn_that_is_regenerated_retried_or_not_edited(visit, alice, endpoint):
    endpoint.script(KEY, answer="Two.")
    page = visit(alice)
    begin_thread(page, "How many boats are there?")
    wait_for_answer(page)

    turn(page).get_by_role("button", name="Regenerate").press("Enter")
    expect(turn(page).locator(".turn__branch")).to_contain_text("2 of 2")
    expect(turn(page).locator(".turn__author")).to_be_focused()

    endpoint.script(KEY, mode="error-500")
    send_message(page, "And oars?")
    retry = turn(page, 1).get_by_role("button", name="Retry")
    expect(retry).to_be_visible()
    endpoint.script(KEY, answer="Four.")
    retry.press("Enter")
    expect(turn(page, 1).locator(".answer")).to_contain_text("Four.")
    expect(turn(page, 1).locator(".turn__author")).to_be_focused()

    # The turn is replaced once more when it is remembered.
    expect(turn(page, 1).get_by_text("Remembered", exact=True)).to_be_visible()
    turn(page, 1).locator(".menu summary").press("Enter")
    turn(page, 1).get_by_role("link", name="Edit message…").press("Enter")
    expect(page.locator("#edited")).to_be_focused()
    page.keyboard.press("Escape")
    expect(turn(page, 1).locator(".menu summary")).to_be_focused()


def test_arrow_up_edits_the_last_message(visit, alice):
    page = visit(alice)
    begin_thread(page, "Where is the key?")
    wait_for_answer(page)

    page.get_by_label("Message", exact=True).press("ArrowUp")
    expect(page.locator("#edited")).to_have_value("Where is the key?")


def test_arrow_up_edits_no_message_of_somebody_else(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    page = visit(bob, f"/t/{thread}")
    wait_for_answer(page)
    edits: list[str] = []
    page.on("request", lambda request: "edit" in request.url and edits.append(request.url))
    page.get_by_label("Message", exact=True).press("ArrowUp")
    send_message(page, "And the spare one?")
    expect(page.locator("article.turn")).to_have_count(2)
    wait_for_answer(page)

    page.get_by_label("Message", exact=True).press("ArrowUp")
    expect(page.locator("#edited")).to_have_value("And the spare one?")
    assert len(edits) == 1


def test_a_click_beside_a_form_loses_nothing_that_was_typed(visit, alice):
    page = visit(alice)
    begin_thread(page, "Where is the key?")
    wait_for_answer(page)
    page.get_by_label("Message", exact=True).press("ArrowUp")
    page.locator("#edited").fill("Where is the key to the sauna?")
    for x in (5, page.locator("#dialog").bounding_box()["x"] + 5):  # beside the dialog, and on its margin
        page.mouse.click(x, 300)
    expect(page.locator("#edited")).to_have_value("Where is the key to the sauna?")
    expect(page.locator("#edited")).to_be_visible()

    page.keyboard.press("Escape")
    expect(page.locator("#edited")).to_be_hidden()

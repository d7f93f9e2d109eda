"""Forget everywhere: the dialog, the receipt, and what other open pages show."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn
from tests.e2e.test_accessibility import violations

SECRET = "Xian offers the titanium housing for 31 euros"


def begin_with_secret(page: Page) -> str:
    path = begin_thread(page, SECRET)
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    return path


def open_dialog(page: Page, number: int = 0) -> None:
    turn(page, number).get_by_title("More", exact=True).click()
    turn(page, number).get_by_text("Forget…").click()
    expect(page.locator("#dialog")).to_be_visible()


def test_a_turn_is_forgotten_everywhere_after_a_dialog_with_counts(alice, endpoint, visit):
    endpoint.script(KEY, answer="Noted: 31 euros.")
    page = visit(alice)
    path = begin_with_secret(page)
    endpoint.script(KEY, answer="Xian is cheaper [1].")
    elsewhere = visit(alice)
    begin_thread(elsewhere, "Who offers the titanium housing for less than Bergmann?")
    expect(turn(elsewhere).locator(".citation")).to_have_count(1)
    expect(turn(elsewhere).locator(".turn__memory-text")).to_have_text("Remembered")

    # Cancel is focused, and Escape forgets nothing.
    open_dialog(page)
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("link", name="Cancel")).to_be_focused()
    expect(dialog.locator("dl > div")).to_contain_text(
        ["This exchange, including its text", "Its passages in the search index", "Citations in later answers"]
    )
    expect(dialog.get_by_label("Also forget the answer for which it was recalled")).not_to_be_checked()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(turn(page, 0)).to_contain_text(SECRET)

    open_dialog(page)
    dialog.get_by_role("button", name="Forget everywhere").click()

    receipt = page.locator(".receipt")
    expect(receipt).to_be_focused()
    expect(receipt).to_contain_text("Citations in later answers, now empty")
    expect(receipt).to_contain_text("Erased from disk by tomorrow")
    expect(turn(page, 0)).to_contain_text("Forgotten everywhere")
    expect(turn(page, 0)).to_contain_text("by you, today")
    expect(page.locator("#main")).not_to_contain_text("31 euros")
    expect(page).to_have_title("Untitled thread · Cato")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    receipt.get_by_text("Copy receipt").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[0].startswith("Receipt ")
    assert "Removed from search and recall" in copied

    # The answer that cited it is still open in another browser.
    expect(turn(elsewhere).locator(".citation--missing")).to_have_count(1)
    expect(turn(elsewhere).locator(".answer__blocks")).to_contain_text("Xian is cheaper")
    page.goto(path)
    send_message(page, "And now?")
    expect(turn(page, 1)).to_contain_text("And now?")
    receipt.get_by_text("View all receipts").click()
    expect(page.locator(".receipt h2")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dialog_and_receipt_have_no_violations(alice, endpoint, visit, theme):
    endpoint.script(KEY, answer="Noted: 31 euros.")
    page = visit(alice, color_scheme=theme, reduced_motion="reduce", viewport={"width": 320, "height": 640})
    begin_with_secret(page)
    open_dialog(page)
    found = violations(page, is_covered=True)
    page.locator("#dialog").get_by_role("button", name="Forget everywhere").click()
    expect(page.locator(".receipt")).to_be_focused()
    found += violations(page)
    assert not found, "\n".join(found)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_the_dialog_is_a_page(alice, endpoint, visit):
    endpoint.script(KEY, answer="Noted: 31 euros.")
    path = begin_with_secret(visit(alice))
    page = visit(alice, path, java_script_enabled=False)
    turn(page, 0).locator("summary[title='More']").click()
    turn(page, 0).get_by_text("Forget…").click()
    expect(page.get_by_role("heading", name="Forget this everywhere?")).to_be_visible()
    page.get_by_role("button", name="Forget everywhere").click()

    expect(page.locator(".receipt")).to_contain_text("Removed from search and recall")
    expect(page.locator("#main")).not_to_contain_text("31 euros")


def test_a_page_that_is_open_loses_the_text_at_once(alice, endpoint, visit):
    endpoint.script(KEY, answer="Noted: 31 euros.")
    page = visit(alice)
    path = begin_with_secret(page)
    other = visit(alice, path)
    expect(turn(other, 0)).to_contain_text(SECRET)
    open_dialog(page)
    page.locator("#dialog").get_by_role("button", name="Forget everywhere").click()

    expect(turn(other, 0)).to_contain_text("Forgotten everywhere")
    expect(turn(other, 0)).to_contain_text("Text deleted.")
    expect(turn(other, 0)).not_to_contain_text("31 euros")
    # The receipt is for the page of the person who did it, and comes with a reload.
    expect(other.locator(".receipt")).to_have_count(0)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_text_fades_out_and_its_box_keeps_the_height(alice, endpoint, visit, motion):
    endpoint.script(KEY, answer="Noted: 31 euros.")
    page = visit(alice)
    path = begin_with_secret(page)
    other = visit(alice, path, reduced_motion=motion)
    message = turn(other, 0).locator("> .turn__message")
    height = message.bounding_box()["height"]
    other.evaluate("""() => document.addEventListener("htmx:oobAfterSwap", ({ detail: { target } }) => {
        const fading = document.querySelector(".turn__fading");
        if (!target.matches(".turn")) return;
        const { animationDuration } = fading ? getComputedStyle(fading) : {};
        document.body.dataset.fade = fading ? `${fading.textContent.includes("31")} ${animationDuration}` : "none";
    })""")
    open_dialog(page)
    page.locator("#dialog").get_by_role("button", name="Forget everywhere").click()

    expect(turn(other, 0)).to_contain_text("Text deleted.")
    assert other.evaluate("document.body.dataset.fade") == ("none" if motion == "reduce" else "true 0.32s")
    expect(other.locator(".turn__fading")).to_have_count(0)
    expect(other.locator("#main")).not_to_contain_text("31 euros")
    assert message.bounding_box()["height"] >= height

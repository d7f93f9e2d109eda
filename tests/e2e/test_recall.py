"""Recall in the browser: shown while it happens, with explanation and source, until it is forgotten."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer


@pytest.fixture
def remembered_message(visit, alice, endpoint) -> tuple[Page, str]:
    """Send a message as Alice and wait until it is remembered."""
    endpoint.script(KEY, answer="Noted: the greenhouse key hangs **behind the clock**.")
    page = visit(alice)
    path = begin_thread(page, "The greenhouse key hangs behind the clock in the hall.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    endpoint.script(KEY, answer="Behind the clock.", first_delay=1.5)
    return page, path


def test_an_exchange_is_recalled_in_another_thread_with_explanation_and_source(visit, alice, remembered_message):
    _, path = remembered_message
    page = visit(alice)
    begin_thread(page, "Where do we keep the thing that opens the glass house?")

    panel = turn(page).locator(".recall__panel")
    expect(panel.locator(".recall__count")).to_have_text("1 recalled")
    expect(turn(page).locator(".answer__streaming--live")).to_be_visible()  # shown before the answer

    panel.locator("> summary").click()
    item = panel.locator(".recall-item")
    item.locator("summary").first.click()
    expect(item.locator(".recall-item__why > summary")).not_to_be_empty()
    item.locator(".recall-item__why > summary").click()
    expect(item.locator(".similarity")).to_have_text(re.compile(r"Similarity\s*\.\d\d"))
    expect(item.locator(".recall-item__source")).to_contain_text("You said in The greenhouse key")
    wait_for_answer(page)
    expect(item.locator(".recall-item__text")).to_be_visible()  # the end of the answer did not close it
    expect(item.locator(".recall-item__text strong")).to_have_text("behind the clock")
    expect(item.locator(".recall-item__unfold")).to_have_count(0)

    item.get_by_role("link", name="Open thread").click()
    page.wait_for_url(re.compile(re.escape(path) + "#turn-"))
    expect(page.locator("article.turn:target")).to_contain_text("The greenhouse key hangs behind the clock")
    expect(page.locator("article.turn:target")).to_be_in_viewport()


def test_the_actions_of_a_passage_are_in_one_line_on_phones_while_it_has_the_focus(visit, alice, remembered_message):
    page = visit(alice)
    page.set_viewport_size({"width": 375, "height": 740})
    begin_thread(page, "Where do we keep the thing that opens the glass house?")
    wait_for_answer(page)
    turn(page).locator(".recall__panel > summary").click()
    item = turn(page).locator(".recall-item")
    item.locator("summary").first.click()
    expect(item.locator("summary").first).to_be_focused()

    actions = item.locator(".recall-item__buttons .link")
    expect(actions).to_have_text(["Pin", "Not relevant", "Forget…"])
    texts = actions.evaluate_all(
        "all => all.map(one => { const range = new Range(); range.selectNodeContents(one);"
        " return range.getBoundingClientRect().bottom; })"
    )
    assert max(texts) - min(texts) < 2


def test_a_long_passage_is_rendered_and_folded(visit, alice, endpoint):
    steps = "\n".join(f"- step {number}" for number in range(1, 13))
    endpoint.script(KEY, answer=f"## Winter\n\n{steps}\n\n| part | size |\n|---|---|\n| hose | 12 mm |\n\n<b>raw</b>")
    page = visit(alice)
    begin_thread(page, "Here is how we drain the greenhouse pump before the frost.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    endpoint.script(KEY, answer="As written down.")
    page.goto("/")
    begin_thread(page, "How do we drain the greenhouse pump?")
    panel = turn(page).locator(".recall__panel")
    expect(panel.locator(".recall__count")).to_have_text("1 recalled, none cited")
    panel.locator("> summary").click()
    item = panel.locator(".recall-item")
    item.locator("summary").first.click()
    text = item.locator(".recall-item__text")
    expect(text.locator("h2")).to_have_text("Winter")
    expect(text.locator("li")).to_have_count(12)
    expect(text.locator("td").first).to_have_text("hose")
    expect(text).to_contain_text("<b>raw</b>")
    assert text.bounding_box()["height"] == 132
    item.get_by_text("Show all").click()
    expect(item.get_by_text("Show less")).to_be_visible()
    assert text.bounding_box()["height"] > 300
    item.get_by_text("Show less").click()
    assert text.bounding_box()["height"] == 132


def test_forgetting_from_the_panel_is_confirmed_once_and_shown_in_other_browsers_at_once(
    visit, alice, cato, remembered_message
):
    first, path = remembered_message
    page = visit(alice)
    second = begin_thread(page, "Where do we keep the thing that opens the glass house?")
    expect(turn(page).locator(".recall__count")).to_have_text("1 recalled")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    elsewhere = visit(alice, second, url=cato.other_url)
    elsewhere.locator(".recall__panel > summary").click()
    expect(elsewhere.locator(".recall-item .recall-item__excerpt")).to_contain_text("behind the clock")

    page.locator(".recall__panel > summary").click()
    page.locator(".recall-item summary").first.click()
    page.locator(".recall-item").get_by_role("link", name="Forget…").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Forget this exchange?")
    expect(question.get_by_role("link", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question).to_be_hidden()
    expect(elsewhere.locator(".recall-item .recall-item__excerpt")).to_contain_text("behind the clock")

    page.locator(".recall-item").get_by_role("link", name="Forget…").click()
    question.get_by_role("button", name="Forget it").click()
    page.wait_for_url(re.compile(re.escape(path)))
    expect(page.locator(".toast")).to_contain_text("Forgotten.")
    expect(elsewhere.locator(".recall-item--missing")).to_contain_text("Forgotten")
    expect(elsewhere.locator("#turns")).not_to_contain_text("in the hall")
    expect(first.locator(".recall__forgotten")).to_contain_text("by you, today")

    send_message(page, "Where is the key of the glass house?")
    wait_for_answer(page)
    expect(turn(page).locator(".recall-item .recall-item__excerpt")).to_have_text([re.compile("opens the glass house")])


def test_a_thread_that_is_not_remembered_is_marked(visit, alice, remembered_message):
    page = visit(alice)
    begin_thread(page, "Hello there")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    switch = page.get_by_role("switch")
    expect(switch).to_be_checked()
    switch.click()
    page.get_by_role("button", name="Stop saving", exact=True).click()
    expect(switch).not_to_be_checked()
    expect(switch).to_have_text("Not remembered")

    send_message(page, "Where do we keep the thing that opens the glass house?")
    expect(turn(page).locator(".recall__count")).to_have_text("1 recalled")
    wait_for_answer(page)
    expect(turn(page).locator(".turn__memory--remembered")).to_have_count(0)


def test_each_person_chooses_how_recall_is_shown(visit, alice, remembered_message):
    page = visit(alice)
    path = begin_thread(page, "Where do we keep the thing that opens the glass house?")
    wait_for_answer(page)

    for mode, count, is_open in (("on", 1, True), ("off", 0, False), ("summary", 1, False)):
        send_message(page, f"/showcontext {mode}")
        expect(page.locator(".card").last).to_contain_text(f"Recalled context: {mode}")
        page.goto(path)
        expect(page.locator(".recall__panel:visible")).to_have_count(count)
        expect(page.locator(".recall-item:visible")).to_have_count(1 if is_open else 0)

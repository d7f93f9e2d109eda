"""Forced colours, right-to-left texts and paper."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn, wait_for_answer
from tests.e2e.test_accessibility import WIDE_TABLE, overflowing
from tests.groups import make_group, start_thread

ARABIC = "مفتاح البيت الزجاجي معلق خلف الساعة في القاعة، وهو مفتاح صغير."
HEBREW = "המפתח לחממה תלוי מאחורי השעון במסדרון."


def style(element: Locator, name: str, pseudo: str = "") -> str:
    """Return a computed style of the element, or of its pseudo-element."""
    return str(element.evaluate("(e, [name, of]) => getComputedStyle(e, of).getPropertyValue(name)", [name, pseudo]))


def send_in_both_scripts(page: Page, endpoint, *, table: str = "") -> None:
    """Remember a sentence in Arabic, then ask about it; the answer is in Hebrew, English and code."""
    endpoint.script(KEY, answer="Noted.")
    begin_thread(page, ARABIC)
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    endpoint.script(KEY, answer=f"{HEBREW} [1]\n\n- {HEBREW}\n\nIn English.\n\n```\n# {HEBREW}\n```\n\n{table}")
    page.goto("/")
    begin_thread(page, "أين مفتاح البيت الزجاجي؟")
    wait_for_answer(page)


def test_in_forced_colours_what_is_selected_focused_or_new_is_visible(cato, administrator, alice, bob, visit):
    shared = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    page = visit(alice, "/", forced_colors="active")
    bob.send_message("@Alice Owner, is it you?", shared)
    page.reload()
    expect(page.locator(f"#thread-{shared} .sidebar__unread-dot")).to_have_css("border-top-style", "solid")
    page.goto(f"/t/{shared}")
    assert style(page.locator(".memory-toggle .switch"), "border-top-style", "::before") == "solid"
    message = page.get_by_label("Message", exact=True)
    message.focus()
    expect(page.locator("#composer")).to_have_css("outline-style", "solid")
    for typed in ("/", "@team"):
        message.fill("")
        message.press_sequentially(typed)
        expect(page.locator("[role=option][aria-selected]:visible")).to_have_count(1)
        expect(page.locator("[role=option][aria-selected]:visible")).to_have_css("outline-style", "solid")
    message.fill("")
    page.get_by_role("button", name="Chat model:").click()
    options = page.locator("#model-list [role=option]")
    expect(options).to_have_count(2)
    assert [style(each, "outline-style") for each in options.all()] == ["solid", "none"]

    page.goto("/search?q=key&order=newest")
    orders = page.locator(".search-results__orders a")
    colours = [style(each, "border-bottom-color") for each in orders.all()]
    assert colours[0] == colours[2] != colours[1]
    page.get_by_label("Type", exact=True).focus()
    expect(page.locator(".filter-bar__filter:focus-within")).to_have_css("outline-style", "solid")
    page.goto("/prompts")
    page.locator("#prompt-name").focus()
    expect(page.locator("#prompt-name")).to_have_css("outline-style", "solid")
    page.locator("#prompt-text").focus()
    expect(page.locator("#prompt-text")).to_have_css("outline-style", "solid")


def test_a_sentence_about_a_person_has_the_direction_of_the_interface(alice, visit):
    page = visit(alice, "/settings")
    page.get_by_label("Your name").fill("יעל כהן")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_be_visible()
    page.goto("/projects")
    page.get_by_label("Name", exact=True).fill("The boat")
    page.get_by_role("button", name="Create").click()
    assert style(page.get_by_text("created it."), "direction") == "ltr"


def test_a_message_has_its_direction_while_it_is_written(alice, visit):
    page = visit(alice, "/")
    message = page.get_by_label("Message", exact=True)
    assert style(message, "direction") == "ltr"
    message.fill(HEBREW)
    assert style(message, "direction") == "rtl"


@pytest.mark.parametrize("width", [320, 1280])
def test_each_text_has_its_own_direction(alice, visit, endpoint, width):
    page = visit(alice, "/", viewport={"width": width, "height": 800})
    send_in_both_scripts(page, endpoint)
    answer = turn(page).locator(".answer__blocks")
    texts = [
        turn(page).locator(".turn__message-text"), page.locator("#thread-title"),
        page.locator("[aria-current] .sidebar__thread-title"), answer.locator("p").first, answer.locator("li"),
        turn(page).locator(".recall-item__excerpt").first,
    ]  # fmt: skip
    for text in texts:
        expect(text).to_have_css("direction", "rtl")
    english = [answer.locator("p").last, answer.locator("pre"), turn(page).locator(".turn__message-header")]
    assert [style(text, "direction") for text in english] == ["ltr"] * len(english)
    assert overflowing(page) == []
    page.goto("/search?q=مفتاح")
    expect(page.locator(".search-hit__title a").first).to_be_visible()
    assert {style(title, "direction") for title in page.locator(".search-hit__title a").all()} == {"rtl"}
    assert overflowing(page) == []


def test_paper_has_long_lines_of_code_whole(alice, visit, endpoint):
    endpoint.script(KEY, answer="```python\nx = [" + "'an item', " * 40 + "]\n```")
    page = visit(alice, "/", viewport={"width": 720, "height": 900})
    begin_thread(page, "A long line of code")
    wait_for_answer(page)
    code = turn(page).locator(".code-block pre")
    hidden = "node => node.scrollWidth - node.clientWidth"
    assert code.evaluate(hidden) > 0
    page.emulate_media(media="print")
    assert code.evaluate(hidden) <= 0


def test_paper_shows_turns_and_sources_without_controls(alice, visit, endpoint):
    page = visit(alice, "/", viewport={"width": 720, "height": 900})
    send_in_both_scripts(page, endpoint, table=WIDE_TABLE)
    page.emulate_media(media="print")
    for shown in (turn(page).locator(".turn__message-text"), turn(page).locator(".recall-item__excerpt").first):
        expect(shown).to_be_visible()
    controls = (
        ".composer-dock, .sidebar, .turn__actions, .topbar__menu-button, .recall-item__actions, .code-block__copy"
    )
    for control in page.locator(controls).all():
        expect(control).to_be_hidden()
    table = turn(page).locator(".answer__table")
    assert table.evaluate("node => node.firstElementChild.offsetWidth <= node.clientWidth")
    expect(table).to_have_css("mask-image", "none")
    assert overflowing(page) == []

    page.emulate_media(media="screen")
    turn(page, 0).get_by_title("More", exact=True).click()
    turn(page, 0).locator(".menu__danger").click()
    page.locator("#dialog").get_by_role("button", name="Forget everywhere").click()
    page.emulate_media(media="print")
    expect(page.locator(".receipt")).to_contain_text("Erased from disk by")
    expect(page.locator(".receipt .link-row")).to_be_hidden()
    page.goto("/search?q=مفتاح")
    expect(page.locator(".search-hit").first).to_be_visible()
    for control in page.locator(".search-filters, .search-results__orders, .search-page__help").all():
        expect(control).to_be_hidden()

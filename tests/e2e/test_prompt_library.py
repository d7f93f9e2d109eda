"""A saved prompt is added on the page, offered after a slash to those who read its space, and put into the composer."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import begin_thread, send_message, turn, wait_for_answer
from tests.groups import make_group
from tests.server import Client

TEXT = "Write the narrative for {customer}.\nKeep it short."


@pytest.fixture
def carol(cato, administrator) -> Client:
    return cato.join(administrator, "Carol Crew")


def add_prompt(page: Page, name: str, text: str, space: str = "For you") -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_label("For whom").select_option(label=space)
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".saved-prompt__name", has_text=name)).to_be_visible()


def option(page: Page, name: str) -> Locator:
    return page.locator(f'[role="option"][data-command="{name}"]')


def test_a_prompt_of_a_group_is_offered_to_its_members_and_fills_the_box(visit, cato, administrator, alice, carol):
    group = make_group(cato, administrator, alice, carol)
    (space,) = cato.sql("SELECT name FROM memory_space WHERE id = ?", group.replace("-", ""))[0]
    page = visit(alice, "/prompts")
    add_prompt(page, "narrative", TEXT, space)

    page.goto("/")
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("/na")
    expect(option(page, "narrative")).to_contain_text(space)
    expect(option(page, "narrative")).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    expect(box).to_have_value(TEXT)
    assert box.evaluate("box => box.value.slice(box.selectionStart, box.selectionEnd)") == "{customer}"
    expect(page.locator("#slash-menu")).to_be_hidden()
    page.keyboard.type("Halden")
    box.press("Enter")
    page.wait_for_url("**/t/*")
    expect(turn(page)).to_contain_text("Write the narrative for Halden.")

    other = visit(carol)
    other.get_by_label("Message", exact=True).press_sequentially("/na")
    expect(option(other, "narrative")).to_be_visible()
    option(other, "narrative").click()
    expect(other.get_by_label("Message", exact=True)).to_have_value(TEXT)


def test_a_prompt_is_not_offered_to_a_stranger(visit, cato, administrator, alice, carol, bob):
    group = make_group(cato, administrator, alice, carol)
    (space,) = cato.sql("SELECT name FROM memory_space WHERE id = ?", group.replace("-", ""))[0]
    add_prompt(visit(alice, "/prompts"), "handover", "Write the handover.", space)
    add_prompt(visit(bob, "/prompts"), "handbook", "Write the handbook.")

    page = visit(bob)
    page.get_by_label("Message", exact=True).press_sequentially("/hand")
    expect(option(page, "handbook")).to_be_visible()
    expect(option(page, "handover")).to_have_count(0)


def test_the_sent_name_fills_the_box_with_and_without_script(visit, alice):
    add_prompt(visit(alice, "/prompts"), "digest", "Write the digest.")

    page = visit(alice)
    page.route("**/prompts/offered*", lambda route: route.abort())
    send_message(page, "/digest")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Write the digest.")
    expect(page.locator("article.turn")).to_have_count(0)

    page = visit(alice, java_script_enabled=False)
    page.get_by_label("Message", exact=True).fill("/digest")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Write the digest.")


def test_a_prompt_that_was_deleted_meanwhile_is_an_error_and_the_box_keeps_its_text(visit, alice):
    prompts = visit(alice, "/prompts")
    add_prompt(prompts, "obsolete", "Write what is obsolete.")
    page = visit(alice)
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("/obsol")
    expect(option(page, "obsolete")).to_be_visible()
    prompts.locator(".saved-prompt", has_text="/obsolete").get_by_role("link", name="Delete…").click()
    prompts.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(prompts.locator(".saved-prompt", has_text="/obsolete")).to_have_count(0)

    box.press("Enter")
    expect(page.locator("#composer-error")).to_contain_text("This prompt is not available any more.")
    expect(box).to_have_value("/obsol")


def test_a_message_is_saved_as_a_prompt_without_script(visit, alice):
    page = visit(alice)
    address = begin_thread(page, "Write the status report.")
    wait_for_answer(page)
    page = visit(alice, address, java_script_enabled=False)
    turn(page).locator(".turn__actions summary").click()
    page.get_by_role("link", name="Save as prompt…").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Write the status report.")
    add_prompt(page, "status", "Write the status report.")

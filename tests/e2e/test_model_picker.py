"""The model picker of the composer, by keyboard, on every open page of the thread, and without script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, tab_to, turn


def composer(page: Page):
    return page.get_by_label("Message", exact=True)


def picker_button(page: Page):
    return page.get_by_role("button", name=re.compile("^Chat model:"))


def test_a_model_is_chosen_by_keyboard_and_used_for_the_next_answer(visit, alice, endpoint):
    page = visit(alice)
    path = begin_thread(page, "First")
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
    other = visit(alice, path)
    composer(page).fill("What about this one?")
    tab_to(page, picker_button(page))

    page.keyboard.press("Enter")
    models = page.get_by_role("listbox", name="Chat models")
    expect(models).to_be_focused()
    expect(models.get_by_role("option").locator("b")).to_have_text(["fake", "fake-large"])
    expect(models.get_by_role("option", checked=True)).to_contain_text("default")
    page.keyboard.press("Escape")
    expect(models).to_be_hidden()
    expect(picker_button(page)).to_be_focused()
    expect(composer(page)).to_have_value("What about this one?")

    page.keyboard.press("Enter")
    expect(models).to_be_focused()
    page.keyboard.press("ArrowDown")
    selected = models.get_by_role("option", selected=True)
    expect(selected).to_have_text(re.compile("fake-large"))
    assert models.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.press("Enter")
    expect(models).to_be_hidden()
    for each in (page, other):
        expect(picker_button(each)).to_have_text(re.compile("fake-large"))
    expect(picker_button(page)).to_be_focused()

    composer(page).press("Enter")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")
    assert [request["model"] for request in endpoint.requests(KEY)[-2:]] == ["fake", "fake-large"]
    page.reload()
    expect(picker_button(page)).to_have_text(re.compile("fake-large"))


def test_a_new_thread_uses_the_model_chosen_for_it(visit, alice, endpoint):
    page = visit(alice)
    picker_button(page).click()
    page.get_by_role("option", name="fake-large").click()
    expect(picker_button(page)).to_have_text(re.compile("fake-large"))
    begin_thread(page, "First")

    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
    expect(picker_button(page)).to_have_text(re.compile("fake-large"))
    assert endpoint.requests(KEY)[-1]["model"] == "fake-large"


def test_a_message_that_is_sent_before_the_choice_is_saved_waits_for_it(visit, alice, endpoint):
    page = visit(alice)
    page.route(re.compile("/model$"), delayed)
    picker_button(page).click()
    page.get_by_role("option", name="fake-large").click()
    begin_thread(page, "First")
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
    picker_button(page).click()
    page.get_by_role("option", name=re.compile("default")).click()
    send_message(page, "Second")

    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("All right.")
    assert [request["model"] for request in endpoint.requests(KEY)[-2:]] == ["fake-large", "fake"]


def delayed(route: Route) -> None:
    if route.request.method == "POST":
        route.request.frame.page.wait_for_timeout(1000)
    route.continue_()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_list_fits_the_screen_and_its_targets_are_large_enough(visit, alice, width):
    page = visit(alice, viewport={"width": width, "height": 700}, has_touch=width < 600)
    picker_button(page).click()
    models = page.get_by_role("listbox", name="Chat models").get_by_role("option")
    expect(models).to_have_count(2)
    popover, dock = page.locator("#model-picker").bounding_box(), page.locator("#composer").bounding_box()

    assert popover["x"] >= 0
    assert popover["x"] + popover["width"] <= width
    assert popover["y"] >= 0
    assert popover["y"] + popover["height"] <= dock["y"]
    if width < 600:
        for target in (picker_button(page), models.first):
            assert target.bounding_box()["height"] >= 44
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_script_the_model_is_chosen_on_a_page(visit, alice, endpoint):
    page = visit(alice, java_script_enabled=False)
    page.get_by_role("link", name="Chat model:").click()
    page.get_by_label("fake-large").check()
    page.get_by_role("button", name="Save").click()
    composer(page).fill("First")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/t/*")
    link = page.get_by_role("link", name="Chat model:")
    expect(link).to_have_text(re.compile("fake-large"))

    link.click()
    page.get_by_label("fake default").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/t/*")
    expect(page.get_by_role("link", name="Chat model:")).not_to_have_text(re.compile("fake-large"))

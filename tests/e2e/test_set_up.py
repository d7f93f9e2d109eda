"""Set-up: the first account by the printed link, dummy mode, and connecting a model."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, row_count, send_message, turn, wait_for_answer
from tests.server import PASSWORD, running, wait_for

SECRET = "sk-never-in-a-page-8253"


def test_the_first_person_sets_up_uses_dummy_mode_and_connects_a_model_without_a_restart(tmp_path, visit, endpoint):
    endpoint.script(SECRET, answer="A real answer.")
    with running(tmp_path) as cato:
        link = wait_for(lambda: re.search(r"http\S+/setup/\S+|/setup/\S+", cato.logs()), "the set-up link")[0]
        page = visit(None, link[link.index("/setup/") :], url=cato.url)

        page.get_by_label("Your name").fill("   ")
        page.get_by_label("Email").fill("ada@halden.example")
        page.get_by_label("Password").fill("short")
        page.get_by_role("button", name="Create account").click()
        expect(page.get_by_text("Type the name the others know you by.")).to_be_visible()
        expect(page.get_by_text("Use at least 10 characters.").first).to_be_visible()
        expect(page.get_by_label("Email")).to_have_value("ada@halden.example")
        expect(page.get_by_label("Your name")).to_be_focused()

        page.get_by_label("Your name").fill("Ada Admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create account").click()
        expect(page.get_by_text("Welcome, Ada Admin.")).to_be_visible()
        expect(page.get_by_label("Message", exact=True)).to_be_focused()

        expect(page.locator("#banner")).to_contain_text("Dummy mode.")
        path = begin_thread(page, "Is anybody there?")
        expect(turn(page).locator(".answer__blocks")).to_contain_text("Placeholder: no model is connected.")
        wait_for_answer(page)
        assert row_count(cato, "chat_turn") == 1
        assert row_count(cato, "memory_exchange") == 0

        page.get_by_role("link", name="Connect a model").click()
        page.get_by_label("Address").fill("http://127.0.0.1:9")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#endpoint-test .error-message")).to_contain_text("127.0.0.1:9")
        page.get_by_label("Address").fill(endpoint.openai_url)
        page.get_by_label("API key").fill(SECRET)
        page.get_by_label("Model").fill("fake")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#endpoint-test .success-message")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("It answers from the next message on.")).to_be_visible()
        expect(page.get_by_label("API key")).to_have_value("••••••••")
        assert SECRET not in page.content()

        page.goto(path)
        expect(page.locator("#banner")).to_be_empty()
        send_message(page, "And now?")
        expect(turn(page).locator(".answer__blocks")).to_have_text("A real answer.")
        expect(turn(page).locator(".turn__memory")).to_have_text(re.compile("Remembered"))
        exchanges = cato.sql("SELECT user_message, assistant_message FROM memory_exchange")
        assert exchanges == [("And now?", "A real answer.")]


def test_settings_from_the_environment_are_marked_and_read_only(visit, administrator, endpoint):
    page = visit(administrator, "/settings/model")

    address = page.get_by_label("Address")
    expect(address).to_be_disabled()
    expect(address).to_have_value(endpoint.openai_url)
    expect(page.get_by_label("API key")).to_be_disabled()
    expect(page.get_by_text("Set by environment variable; cannot be changed here.")).to_have_count(2)
    expect(page.get_by_label("Model")).to_be_enabled()


def test_a_member_cannot_open_administration_pages(visit, alice):
    page = visit(alice, "/settings")
    expect(page.get_by_role("link", name="Model settings")).to_have_count(0)
    for path in ("/settings/model", "/admin/people", "/admin/exchanges", "/admin/jobs"):
        assert page.goto(path).status in (403, 404)

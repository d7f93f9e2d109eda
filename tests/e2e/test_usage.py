"""Limits of usage in the browser: set by an administrator, told before and when a message is refused."""

from __future__ import annotations

import uuid

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, wait_for_answer
from tests.server import wait_for


def set_limit(page, person_id: uuid.UUID, **amounts: str) -> None:
    page.goto("/admin/usage/limits")
    page.get_by_label("For", exact=True).select_option(value=f"person:{person_id}")
    for label, amount in amounts.items():
        page.get_by_label({"soft": "Notice from", "hard": "Limit"}[label], exact=True).fill(amount)
    page.get_by_role("button", name="Set limit").press("Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()


def test_a_person_at_the_limit_keeps_the_message_and_reads_when_it_resets(cato, administrator, alice, visit):
    page = visit(alice, "/")
    begin_thread(page, "Where does the spare key hang?")
    wait_for_answer(page)
    counted = "SELECT requests FROM chat_usageday JOIN people_user ON person_id = people_user.id"
    wait_for(lambda: cato.sql(f"{counted} WHERE people_user.email = ?", alice.email), "the worker's count")
    office = visit(administrator, "/admin/usage")
    expect(office.get_by_role("row", name="Alice Owner").first).to_be_visible()

    # Other tests have people of the same name.
    alices_id = uuid.UUID(str(cato.sql("SELECT id FROM people_user WHERE email = ?", alice.email)[0][0]))
    set_limit(office, alices_id, soft="1", hard="100000")
    page.reload()
    expect(page.locator("#usage-notice")).to_contain_text("of 100,000 tokens this month")

    set_limit(office, alices_id, soft="", hard="1")
    send_message(page, "And the other one?")
    expect(page.locator("#composer-error")).to_contain_text("Your monthly limit is reached")
    expect(page.locator("#composer-error")).to_contain_text("It resets on")
    expect(page.get_by_label("Message", exact=True)).to_have_value("And the other one?")
    expect(page.locator("article.turn")).to_have_count(1)

    page.goto("/settings")
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("heading", name="Monthly limit")).to_be_visible()
    expect(page.get_by_text("of 1 token this month.")).to_be_visible()

    remove = office.get_by_role("button", name="Remove Alice Owner")
    office.set_viewport_size({"width": 390, "height": 844})
    box = remove.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390
    remove.click()
    expect(office.get_by_text("Removed.")).to_be_visible()


def test_on_a_phone_a_long_name_leaves_room_for_the_figures(cato, administrator, visit):
    name = "Maximiliane-Wilhelmine von und zu Hohenlohe-Langenburg-Schillingsfürst"
    cato.join(administrator, name).send_message("Hello")
    wait_for(lambda: name in administrator.get("/admin/usage").text, "the worker's count")

    page = visit(administrator, "/admin/usage", viewport={"width": 390, "height": 844})
    requests = page.get_by_role("row", name=name).get_by_role("cell").first.bounding_box()
    assert requests["x"] + requests["width"] <= 390

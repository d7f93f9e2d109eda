"""A project in the browser: created by a member, shared with another, closed to an administrator, archived and reopened."""

from __future__ import annotations

import re
import uuid

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, turn, wait_for_answer
from tests.e2e.test_accessibility import overflowing


def test_a_project_from_its_creation_to_its_archive(cato, administrator, alice, bob, visit):
    page = visit(alice, "/projects")
    page.get_by_label("Name", exact=True).fill("Outer fjord")
    page.get_by_label("What it is about (optional)").fill("Twelve buoys until June")
    page.get_by_role("button", name="Create").press("Enter")
    expect(page.get_by_role("heading", name="Outer fjord")).to_be_visible()
    address = re.sub(r"^https?://[^/]+", "", page.url)
    # Other tests have people of the same name.
    (bobs_id,) = cato.sql("SELECT id FROM people_user WHERE email = ?", bob.email)[0]
    page.get_by_label("Add a member").select_option(value=str(uuid.UUID(str(bobs_id))))
    page.get_by_role("button", name="Add", exact=True).last.press("Enter")
    expect(page.get_by_role("cell", name=bob.name)).to_be_visible()

    page.locator("main").get_by_role("link", name="New thread").press("Enter")
    expect(page.get_by_label("Visible to")).to_have_value(address.rsplit("/", 1)[1])
    thread = begin_thread(page, "The mooring lines are 12 mm thick.")
    wait_for_answer(page)

    bobs_page = visit(bob, address)
    link = bobs_page.locator("main").get_by_role("link", name="The mooring lines are 12 mm thick.")
    link.press("Enter")
    # Enter is a line break until the page has loaded its scripts.
    bobs_page.wait_for_url(f"**{thread}")
    send_message(bobs_page, "And the anchors?")
    expect(turn(bobs_page)).to_contain_text("And the anchors?")
    wait_for_answer(bobs_page)

    office = visit(administrator, address)
    expect(office.get_by_role("cell", name=bob.name)).to_be_visible()
    expect(office.get_by_text("The mooring lines are 12 mm thick.")).to_have_count(0)
    assert office.goto(thread).status == 404

    page.goto(address)
    page.get_by_label("Its threads recall from").select_option(label="This project only")
    page.locator("form", has=page.get_by_label("Its threads recall from")).get_by_role("button", name="Save").press(
        "Enter"
    )
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("button", name="Archive", exact=True).press("Enter")
    expect(page.get_by_text("nothing can be added").first).to_be_visible()
    bobs_page.goto(thread)
    expect(bobs_page.get_by_text("The project is archived; nothing can be posted here.")).to_be_visible()
    send_message(bobs_page, "And the shackles?")
    expect(bobs_page.locator("#composer-error")).to_contain_text("Outer fjord is archived.")
    expect(bobs_page.get_by_label("Message", exact=True)).to_have_value("And the shackles?")

    page.get_by_role("button", name="Reopen").press("Enter")
    expect(page.get_by_text("Reopened.")).to_be_visible()
    bobs_page.get_by_label("Message", exact=True).press("Enter")
    expect(bobs_page.locator("article.turn")).to_have_count(3)


def test_a_long_name_and_description_of_a_project_fit_into_every_window(alice, visit):
    page = visit(alice, "/projects", viewport={"width": 360, "height": 740})
    page.get_by_label("Name", exact=True).fill("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrik")
    page.get_by_label("What it is about (optional)").fill(f"https://wiki.halden.example/{'steamer' * 20}")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".toast")).to_be_visible()
    assert overflowing(page) == []
    project = re.sub(r"^https?://[^/]+", "", page.url)
    page.locator("main").get_by_role("link", name="New thread").click()
    expect(page.get_by_label("Visible to")).to_be_visible()
    assert overflowing(page) == []
    thread = begin_thread(page, "Huber")
    wait_for_answer(page)
    paths = (
        "/projects", "/documents", "/instructions", "/prompts", "/settings/digest", "/threads", "/search?q=Huber",
        project, thread, f"{thread}/move",
    )  # fmt: skip
    for width in (360, 1000):
        page.set_viewport_size({"width": width, "height": 740})
        for path in paths:
            page.goto(path)
            assert overflowing(page) == []


def test_archived_projects_stand_apart_from_the_form(alice, visit):
    page = visit(alice, "/projects")
    page.get_by_label("Name", exact=True).fill("Inner fjord")
    page.get_by_role("button", name="Create").press("Enter")
    page.get_by_role("button", name="Archive", exact=True).press("Enter")
    expect(page.get_by_text("nothing can be added").first).to_be_visible()
    page.goto("/projects")
    button = page.get_by_role("button", name="Create").bounding_box()
    heading = page.get_by_role("heading", name="Archived projects").bounding_box()
    assert heading["y"] - button["y"] - button["height"] >= 24


def test_long_names_of_spaces_leave_what_follows_them_on_one_line(alice, visit):
    page = visit(alice, "/projects", viewport={"width": 390, "height": 800})
    page.get_by_label("Name", exact=True).fill("Irrigation of greenhouses and telecommunications")
    page.get_by_role("button", name="Create").press("Enter")
    page.locator("main").get_by_role("link", name="New thread").press("Enter")
    thread = begin_thread(page, "The valves are closed.")
    wait_for_answer(page)
    page.goto(f"{thread}/move")
    lines = page.get_by_text("where it is now").evaluate("node => node.getClientRects().length")
    height = page.get_by_text("where it is now").bounding_box()["height"]
    assert (lines, height <= 24) == (1, True)

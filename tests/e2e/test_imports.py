"""Importing conversations in the browser: progress survives a reload, and an import can be cancelled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import tab_to


@pytest.fixture
def export(tmp_path):
    """Return a function that writes a Claude export of this many unanswered conversations."""

    def make(count: int) -> Path:
        path = tmp_path / f"{count} conversations.json"
        at = "2025-03-01T10:00:00Z"
        rows = [
            {
                "uuid": f"talk-{n}",
                "name": f"About tide {n}",
                "created_at": at,
                "chat_messages": [
                    {"uuid": f"said-{n}", "sender": "human", "text": f"When is tide {n}?", "created_at": at}
                ],
            }
            for n in range(count)
        ]
        path.write_text(json.dumps([*rows, {"title": "A recipe"}]))
        return path

    return make


def upload_export(page: Page, file: Path) -> None:
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Import", exact=True).click()


def test_an_import_shows_progress_and_a_report(visit, alice, export):
    page = visit(alice, "/import")
    upload_export(page, export(30))

    card = page.locator(".task--import")
    expect(card).to_contain_text("30 conversations.json")
    expect(card.locator(".task__state")).to_have_text("Imported")
    expect(page.get_by_role("status").filter(has_text="30 conversations.json: Imported")).to_be_attached()
    expect(card.get_by_role("button", name="Cancel")).to_have_count(0)
    card.get_by_text("What was left out, and why").click()
    expect(card.get_by_text("It is not a conversation from")).to_be_visible()

    page.goto("/threads")
    expect(page.get_by_role("link", name=re.compile("About tide 29")).first).to_be_visible()


def test_the_report_of_an_import_stays_open_while_it_is_embedded(visit, alice, export):
    page = visit(alice, "/import")
    upload_export(page, export(3))
    card = page.locator(".task--import")
    expect(card.locator(".task__state")).to_have_text("Imported")

    report = card.get_by_text("What was left out, and why")
    report.press("Enter")
    # The page does this every few seconds, but three messages are embedded at once.
    card.evaluate(
        """card => htmx.ajax("GET", `/import/${card.id.slice(7)}/row`, { target: card, swap: "outerHTML" })"""
    )
    expect(card.get_by_text("It is not a conversation from")).to_be_visible()
    expect(report).to_be_focused()


def test_progress_survives_a_reload_and_an_import_is_cancelled_by_keyboard(visit, alice, export):
    page = visit(alice, "/import")
    upload_export(page, export(4000))
    state = page.locator(".task__state")
    expect(state).to_have_text(re.compile(r"^\s*[1-9][\d,]* of 4,001 conversations\s*$"))
    expect(page.locator(".task--import .progress-bar")).to_be_visible()

    page.reload()
    expect(state).to_have_text(re.compile(r"^\s*[1-9][\d,]* of 4,001 conversations\s*$"))
    cancel = page.get_by_role("button", name="Cancel the import of 4000 conversations.json")
    page.locator("#main").focus()
    tab_to(page, cancel)
    before = state.inner_text()
    expect(state).not_to_have_text(before)
    expect(cancel).to_be_focused()
    page.keyboard.press("Enter")

    expect(state).to_have_text("Cancelled. What was imported until then stays.")
    expect(page.locator(".toast")).to_contain_text("Cancelled.")


def test_without_scripts_a_file_is_imported_and_an_invalid_one_reported(visit, alice, tmp_path, export):
    page = visit(alice, "/import", java_script_enabled=False)
    upload_export(page, export(3))
    expect(page.locator(".task__state")).to_be_visible()  # a page that is still loading cannot be reloaded
    for _ in range(60):
        page.reload()
        if "Imported" in page.locator(".task__state").inner_text():
            break
        page.wait_for_timeout(250)
    expect(page.locator(".task__state")).to_have_text("Imported")

    notes = tmp_path / "notes.json"
    notes.write_text("")
    upload_export(page, notes)
    expect(page.get_by_role("alert")).to_contain_text("notes.json is empty.")

"""Tools of an MCP server in the browser: added, switched on, asked about before they change something, and shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import server, tool_server
from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.tool_server import TOKEN
from tests.topology import free_port

PORT = free_port()
EVENT = ["Calendar__create_event", json.dumps({"title": "Lunch with Bo"})]
WEATHER = ["Calendar__weather", json.dumps({"city": "Oslo"})]


@pytest.fixture(scope="module")
def calls(home: Path):
    with tool_server.running(home, PORT) as log:
        yield log


@pytest.fixture(scope="module")
def cato(home: Path, endpoint, calls):
    with server.running(
        home / "tools-pages",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY=KEY,
        CATO_TOOLS_INTERNAL_HOSTS=f"127.0.0.1:{PORT}",
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def administrator(cato):
    return cato.set_up("Ada Admin")


def open_tools(page: Page) -> None:
    page.get_by_role("link", name="Tools…").click()
    expect(page.get_by_role("dialog").get_by_role("heading", name="Tools in this thread")).to_be_visible()


def test_a_tool_is_added_switched_on_asked_about_and_used(visit, cato, administrator, endpoint, calls):
    settings = visit(administrator, "/settings/tools")
    settings.get_by_label("Name", exact=True).fill("Calendar")
    settings.get_by_label("Address").fill(f"http://127.0.0.1:{PORT}/mcp")
    settings.get_by_label("Token").fill(TOKEN)
    settings.get_by_role("button", name="Add").click()
    section = settings.get_by_role("region", name="Calendar")
    expect(section.get_by_role("listitem").filter(has_text="Create an event")).to_contain_text("asks before each use")
    section.get_by_label("Everyone").check()
    section.get_by_role("button", name="Save").click()
    expect(settings.get_by_role("region", name="Calendar").get_by_label("Everyone")).to_be_checked()

    alice, bob = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    page = visit(alice)
    open_tools(page)
    page.get_by_role("dialog").get_by_label("Calendar").check()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.locator(".composer .chip", has_text="Calendar")).to_be_visible()
    endpoint.script(KEY, answer="Hello.")
    path = begin_thread(page, "Hello")
    wait_for_answer(page)
    thread = path.rsplit("/", 1)[1]
    (team,) = {str(row[0]) for row in cato.sql("SELECT id FROM memory_space WHERE kind = ?", "team")}
    alice.post(f"/t/{thread}/move", {"space": team})
    page, other = visit(alice, path), visit(bob, path)

    endpoint.script(KEY, answer=["", "", "It is in the calendar."], calls=[[WEATHER], [EVENT]])
    send_message(page, "Put lunch with Bo into the calendar.")
    question = turn(page).get_by_role("region", name="Permission for a tool")
    expect(question).to_contain_text("May the model use Create an event of Calendar?")
    expect(question).to_contain_text("Lunch with Bo")
    expect(turn(page).locator(".answer__phase")).to_contain_text("Waiting for permission")
    seen = turn(other).get_by_role("region", name="Permission for a tool")
    expect(seen).to_contain_text("Lunch with Bo")
    expect(seen.get_by_role("button")).to_have_count(0)
    expect(turn(visit(alice, path)).get_by_role("button", name="Allow once")).to_be_visible()
    question.get_by_role("button", name="Allow once").click()

    expect(turn(page).locator(".answer__blocks")).to_have_text("It is in the calendar.")
    for shown in (page, other):
        uses = turn(shown).locator(".tool-uses summary")
        expect(uses).to_have_text(
            [
                re.compile("Used Look up the weather of Calendar"),
                re.compile("Used Create an event of Calendar · allowed by Alice Owner"),
            ]
        )
        expect(turn(shown).locator(".tool-question")).to_have_count(0)
    turn(page).locator(".tool-uses summary").first.click()
    expect(turn(page).locator(".tool-use").first).to_contain_text("It rains in Oslo.")

    live = re.sub(r' open=""', "", turn(page).locator(".tool-uses").evaluate("node => node.outerHTML"))
    fresh = turn(visit(bob, path)).locator(".tool-uses").evaluate("node => node.outerHTML")
    assert re.sub(r"\s+|hx-swap-oob=\"true\"", "", live) == re.sub(r"\s+", "", fresh)
    assert [json.loads(line)[0] for line in calls.read_text().splitlines()] == ["weather", "create_event"]

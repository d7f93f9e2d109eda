"""A page is saved as a note from the browser, with a bookmarklet or the share menu of the installed app."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.server import PASSWORD

ARTICLE = """<title>Tide tables</title><nav>Home</nav><main><h1>Kiel</h1><p>High water is at ten.</p>
<p id="low">Low water is at four.</p></main>"""


@pytest.fixture
def bookmarklet(visit, alice) -> str:
    page = visit(alice, "/notes")
    page.get_by_text("Save pages from the browser").click()
    link = page.get_by_role("link", name="Save to Cato")
    return re.sub(r"[\n\t]", "", link.get_attribute("href") or "").removeprefix("javascript:")


def save(page: Page, bookmarklet: str, selected: str = "") -> Page:
    page.goto("about:blank")
    page.set_content(ARTICLE)
    if selected:
        page.evaluate("selector => getSelection().selectAllChildren(document.querySelector(selector))", selected)
    with page.expect_popup() as opened:
        page.evaluate(bookmarklet)
    return opened.value


@pytest.mark.parametrize(
    ("selected", "text"),
    [("", "Kiel\n\nHigh water is at ten.\n\nLow water is at four."), ("#low", "Low water is at four.")],
)
def test_a_bookmark_begins_a_note_with_the_selected_or_the_whole_text(visit, alice, bookmarklet, selected, text):
    requested: list[str] = []
    page = visit(alice, "/notes")
    page.context.on("request", lambda request: requested.append(request.url))
    note = save(page, bookmarklet, selected)

    expect(note.get_by_role("textbox")).to_have_value(f"Tide tables\nabout:blank\n\n{text}")
    expect(note.get_by_role("textbox")).to_be_focused()
    assert note.url.endswith("/notes")
    assert not [url for url in requested if "Tide" in url], "the text is not part of a request until it is saved"
    note.get_by_role("button", name="Save note").click()
    expect(note.get_by_role("link", name="Tide tables")).to_be_visible()
    expect(note.get_by_role("textbox")).to_have_value("")
    note.set_viewport_size({"width": 390, "height": 844})
    starts = [found.bounding_box() for found in (note.get_by_role("textbox"), note.locator("tbody .table__main"))]
    assert len({box and box["x"] for box in starts}) == 1, "on a phone the list begins where the form does"


def test_a_page_waits_until_its_reader_has_signed_in(cato, alice, visit):
    page = visit(None, f"{cato.url}/notes#title=Tide+tables&text=Low+water+is+at+four.")
    page.get_by_label("Email").fill(alice.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("textbox")).to_have_value("Tide tables\n\nLow water is at four.")
    page.reload()
    expect(page.get_by_role("textbox")).to_have_value("")


def test_an_app_that_shares_a_page_begins_a_note(cato, visit, alice):
    target = httpx.get(f"{cato.url}/manifest.webmanifest").json()["share_target"]
    shared = {"title": "Tide tables", "text": "https://tides.example/kiel", "url": ""}
    query = "&".join(f"{target['params'][name]}={quote(value)}" for name, value in shared.items())
    page = visit(alice, f"{target['action']}?{query}")

    expect(page.get_by_role("textbox")).to_have_value("Tide tables\n\nhttps://tides.example/kiel")
    assert page.url.endswith("/notes")


def test_the_list_of_notes_begins_no_note(visit, alice):
    page = visit(alice, "/notes?page=1")
    expect(page.get_by_role("textbox")).to_have_value("")
    assert page.url.endswith("/notes?page=1")

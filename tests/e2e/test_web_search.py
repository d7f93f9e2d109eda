"""Searches of the web in the browser: switched on, shown while it searches, in the margin, cited, reloaded, forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import server, web_server
from tests.e2e.conftest import KEY, begin_thread, send_message, turn
from tests.web_server import SearXNG, Site

QUESTION = "Which buoys does the harbour of Halden use?"
FACT = "Halden harbour uses eleven spar buoys of the Norvik type."


@pytest.fixture(scope="module")
def site():
    with web_server.running() as running:
        running.html("/buoys", FACT)
        yield running


@pytest.fixture(scope="module")
def searxng(site: Site):
    with web_server.running(SearXNG) as running:
        running.find(site.url("/buoys"), site.url("/missing"), date="2026-03-01T12:00:00")
        yield running


@pytest.fixture(scope="module")
def cato(home: Path, endpoint, site: Site, searxng: SearXNG):
    with server.running(
        home / "web-search-pages",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY=KEY,
        CATO_WEB_SEARCH_SEARXNG_URL=searxng.url(),
        CATO_WEB_SEARCH_INTERNAL_HOSTS=site.host,
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def administrator(cato):
    return cato.set_up("Ada Admin")


def switch(page: Page) -> Locator:
    return page.get_by_role("switch", name="Search the web")


def margin(page: Page) -> list[str]:
    """Return the HTML of the sources, of the line about the search and of the answer."""
    parts = turn(page).locator(".recall__panel > summary, .recall__list, .searches, .answer__blocks").all()
    return [re.sub(r"\s*(<|>)\s*", r"\1", part.inner_html()) for part in parts]


def test_the_web_is_searched_cited_shown_again_and_forgotten(visit, alice, endpoint, searxng, site, cato):
    page = visit(alice)
    expect(switch(page)).not_to_be_checked()
    switch(page).press("Space")
    expect(switch(page)).to_be_checked()
    endpoint.script(KEY, answer="Eleven spar buoys [1].")
    searxng.delay = 1.5
    path = begin_thread(page, QUESTION)
    expect(turn(page)).to_contain_text("Recalling and searching the web…")
    expect(turn(page)).to_contain_text(f"Searched the web for “{QUESTION}” · 2 results")
    summary = turn(page).locator(".recall__panel > summary")
    expect(summary).to_contain_text("Based on 1 source")
    expect(summary).to_contain_text("1 more found")

    turn(page).get_by_role("link", name="Source 1: Result 1").click()
    card = page.locator(".source-card")
    expect(card).to_contain_text(FACT)
    link = card.get_by_role("link", name="127.0.0.1")
    expect(link).to_have_attribute("href", site.url("/buoys"))
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    card.get_by_role("button", name="Close").click()

    expect(turn(page)).to_contain_text("Remembered")
    live = margin(page)
    page.reload()
    assert margin(page) == live
    expect(switch(page)).to_be_checked()

    forget = alice.get(path).text
    (url,) = set(re.findall(r"/m/[0-9a-f-]{36}/forget-everywhere", forget))
    alice.post(url)
    expect(turn(page)).to_contain_text("Text deleted.")
    expect(turn(page)).not_to_contain_text("Result 1")
    assert not cato.sql("SELECT id FROM chat_turn WHERE CAST(web_search AS TEXT) LIKE ?", "%Norvik%")


def test_the_switch_of_a_thread_applies_to_its_next_message(visit, alice, endpoint, searxng):
    searxng.delay, page = 0, visit(alice)
    begin_thread(page, "Hello")
    expect(turn(page)).to_contain_text("Remembered")
    searxng.queries.clear()
    switch(page).click()
    expect(switch(page)).to_be_checked()
    page.get_by_label("Message", exact=True).fill("And which lights?")
    switch(page).click()
    expect(switch(page)).not_to_be_checked()
    expect(page.get_by_label("Message", exact=True)).to_have_value("And which lights?")
    switch(page).click()
    expect(switch(page)).to_be_checked()
    send_message(page, "And which lights?")
    expect(turn(page)).to_contain_text("Searched the web for “And which lights?”")
    assert searxng.queries == ["And which lights?"]

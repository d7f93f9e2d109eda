"""Cato as an app: a page for times without a connection, which keeps nothing anybody wrote, and links to hand on."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, turn, wait_for_answer
from tests.server import wait_for


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_without_a_connection_a_page_says_so_and_leads_back(visit, alice, endpoint, color_scheme):
    page = visit(alice, service_workers="allow", color_scheme=color_scheme)
    path = begin_thread(page, "The greenhouse key hangs behind the clock.")
    wait_for(lambda: page.evaluate("caches.keys().then((names) => names.length)"), "the page to be kept")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")

    page.context.set_offline(True)
    page.goto("/search?q=greenhouse")
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    button = page.get_by_role("link", name="Try again")
    assert (button.bounding_box() or {"height": 0})["height"] >= 36, "its style sheet is kept, too"

    page.context.set_offline(False)
    button.click()
    expect(page.get_by_role("searchbox").first).to_have_value("greenhouse")
    page.goto(path)
    expect(page.locator("article.turn")).to_contain_text("The greenhouse key")

    addresses = page.evaluate(
        """async () => {
            const addresses = [];
            for (const name of await caches.keys()) {
                for (const request of await (await caches.open(name)).keys()) addresses.push(request.url);
            }
            return addresses;
        }"""
    )
    paths = [urlsplit(address).path for address in addresses]
    assert "/offline" in paths
    assert all(path == "/offline" or path.startswith("/static/") for path in paths)


def test_the_link_to_a_turn_is_copied_or_shared(visit, alice, endpoint):
    page = visit(alice)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.add_init_script("navigator.share = async ({ url }) => { window.shared = url; };")
    begin_thread(page, "The greenhouse key hangs behind the clock.")
    wait_for_answer(page)
    address = page.url
    menu = turn(page).locator("details.menu")
    menu.locator("summary").click()
    menu.get_by_role("link", name="Copy link").click()
    expect(page.locator("#toasts")).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    menu.locator("summary").click()
    menu.get_by_role("link", name="Share…").click()
    assert page.evaluate("window.shared") == copied
    assert page.url == address, "the page is not left"
    page.goto(copied)
    expect(page).to_have_url(re.compile(re.escape(address.split("#")[0]) + "#turn-"))


def test_without_a_share_sheet_nothing_is_offered_to_share(visit, alice, endpoint):
    page = visit(alice)
    begin_thread(page, "The greenhouse key hangs behind the clock.")
    turn(page).locator("details.menu summary").click()
    expect(page.get_by_role("link", name="Copy link")).to_be_visible()
    expect(page.get_by_role("link", name="Share…")).to_have_count(0)

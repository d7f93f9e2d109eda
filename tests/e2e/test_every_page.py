"""Every page on a phone, in the dark theme, by keyboard and without JavaScript."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, tab_to, turn, wait_for_answer
from tests.groups import make_group
from tests.server import wait_for

MEMBER_PAGES = [
    "/",
    "/search?q=greenhouse",
    "/stats",
    "/settings",
    "/instructions",
    "/prompts",
    "/knowledge",
    "/knowledge/extraction",
    "/settings/usage",
    "/settings/digest",
    "/settings/password",
    "/settings/export",
    "/settings/delete-account",
]
# Returns whether the focused element or an ancestor is rendered differently without focus.
SHOWS_FOCUS = """() => {
  const focused = document.activeElement;
  const chain = [];
  for (let node = focused; node && node !== document.body && chain.length < 4; node = node.parentElement) {
    chain.push([node, ""], [node, "::after"]);
  }
  const drawn = () => chain.map(([node, pseudo]) => {
    const style = getComputedStyle(node, pseudo);
    return [style.outlineStyle, style.outlineWidth, style.boxShadow, style.borderColor, style.borderWidth].join();
  });
  const on = drawn();
  focused.blur();
  const off = drawn();
  focused.focus({ focusVisible: true });
  return focused === document.body || on.some((look, index) => look !== off[index]);
}"""
ADMIN_PAGES = [
    "/settings/model",
    "/settings/endpoints",
    "/admin/people",
    "/admin/groups",
    "/admin/exchanges",
    "/admin/documents",
    "/admin/usage",
    "/admin/usage/limits",
    "/admin/jobs",
    "/admin/operations",
    "/admin/retention",
    "/admin/audit",
]


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (390, "dark"), (640, "light"), (1000, "light")])
def test_no_page_scrolls_sideways_at_any_width(cato, administrator, visit, width, scheme):
    page = visit(administrator, "/", viewport={"width": width, "height": 800}, color_scheme=scheme)
    long = "Donaudampfschifffahrtsgesellschaft" * 2
    thread = begin_thread(page, f"A word that is rather long: {long * 2}")
    wait_for_answer(page)
    group = make_group(cato, administrator, cato.join(administrator, f"Captain {long}"))
    administrator.post(f"/admin/groups/{group}", {"name": f"{long} {width}"})
    for path in [thread, *MEMBER_PAGES, *ADMIN_PAGES, f"/spaces/{group}"]:
        page.goto(path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, (path, width)


def test_dark_pages_are_dark_and_light_pages_light(alice, visit):
    shades = {}
    for scheme in ("light", "dark"):
        page = visit(alice, "/", color_scheme=scheme)
        color = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        shades[scheme] = sum(int(float(part)) for part in re.findall(r"[\d.]+", color)[:3])
    assert shades["light"] > 700
    assert shades["dark"] < 120


def test_without_javascript_a_message_can_be_sent_and_its_answer_read(alice, visit):
    page = visit(alice, "/", java_script_enabled=False)
    page.get_by_label("Message", exact=True).fill("Can you hear me without scripts?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/t/*")
    path = page.url
    wait_for(lambda: (page.goto(path), "All right." in page.content())[1], "the answer on the reloaded page", every=0.3)
    page.get_by_label("Message", exact=True).fill("/help")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("/vquery").first).to_be_visible()


def test_search_by_keyboard_opens_the_turn(alice, visit):
    page = visit(alice, "/")
    begin_thread(page, "The greenhouse key hangs behind the clock.")
    expect(turn(page).get_by_text("Remembered", exact=True)).to_be_visible()

    page.keyboard.press("Control+k")
    expect(page.locator("#quick-search-query")).to_be_focused()
    page.keyboard.type("where is what opens the glass house")
    search_link = page.get_by_role("link", name="Search memory for")
    expect(search_link).to_be_visible()
    while "data-active" not in search_link.evaluate("node => node.getAttributeNames()"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    hit = page.locator(".search-hit a").first
    expect(hit).to_contain_text("greenhouse key")
    tab_to(page, hit)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/t/.*#turn-"))
    expect(page.locator("article.turn:target")).to_contain_text("behind the clock")


def test_every_focusable_element_shows_its_focus(administrator, visit):
    page = visit(administrator, "/")
    thread = begin_thread(page, "Hello")
    wait_for_answer(page)
    for path in [thread, "/search?q=hello", "/settings", "/knowledge", *ADMIN_PAGES]:
        page.goto(path)
        for _ in range(25):
            page.keyboard.press("Tab")
            assert page.evaluate(SHOWS_FOCUS), (path, page.evaluate("document.activeElement.outerHTML")[:300])


def test_a_command_shows_its_card_and_an_invalid_one_keeps_the_text(alice, visit):
    page = visit(alice, "/")
    begin_thread(page, "Hello")
    wait_for_answer(page)

    send_message(page, "/vstats")
    expect(page.locator(".card")).to_contain_text("Only you see this")
    expect(page.locator(".card")).to_contain_text("Exchanges you may read")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")

    send_message(page, "/vstast")
    expect(page.locator("#composer-error")).to_contain_text("Did you mean /vstats?")
    expect(page.get_by_label("Message", exact=True)).to_have_value("/vstast")
    page.reload()
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("article.turn")).to_have_count(1)


def test_an_invitation_works_once_and_the_new_person_sees_no_data_of_others(administrator, alice, visit):
    other_page = visit(alice, "/")
    begin_thread(other_page, "The safe combination is 12-34-56.")
    expect(turn(other_page).get_by_text("Remembered", exact=True)).to_be_visible()

    page = visit(administrator, "/admin/people")
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_label("The link; it is shown only now").input_value()
    new = visit(None, link, url=administrator.url)
    new.get_by_label("Your name").fill("Charlie New")
    new.get_by_label("Email").fill("charlie@halden.example")
    new.get_by_label("Password").fill("four plain words are fine")
    new.get_by_role("button", name=re.compile("Join|Create")).click()
    expect(new.get_by_text("Welcome, Charlie New.")).to_be_visible()
    for path in ("/", "/search?q=safe combination", "/stats"):
        new.goto(path)
        expect(new.locator("body")).not_to_contain_text("12-34-56")

    second = visit(None, link, url=administrator.url)
    expect(second.get_by_text("This link is invalid")).to_be_visible()


def test_an_administrator_forgets_selected_exchanges_and_gets_a_receipt(administrator, visit):
    page = visit(administrator, "/")
    begin_thread(page, "Test test test, does this work")
    expect(turn(page).get_by_text("Remembered", exact=True)).to_be_visible()
    page.goto("/admin/exchanges")
    row = page.get_by_role("row", name=re.compile("Test test test")).first
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Forget 1…").click()
    expect(page.get_by_text("Nobody can recall or find it from now on").first).to_be_visible()
    page.get_by_role("button", name="Forget it").last.click()
    expect(page.get_by_text("Purged from disk by")).to_be_visible()

    page.goto("/admin/exchanges")
    expect(page.get_by_role("row", name=re.compile("Test test test"))).to_have_count(0)


def test_failed_embeddings_are_listed_with_their_reason_and_retried(tmp_path, endpoint, visit):
    from tests.server import running

    endpoint.script("broken", mode="error-400")
    endpoint.script("chat", answer="All right.")
    with running(
        tmp_path,
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="chat",
        CATO_VECTOR_STORE_EMBEDDING_PROVIDER="openai",
        CATO_VECTOR_STORE_EMBEDDING_BASE_URL=endpoint.openai_url,
        CATO_VECTOR_STORE_EMBEDDING_API_KEY="broken",
    ) as cato:
        page = visit(cato.set_up(), "/")
        begin_thread(page, "This cannot be embedded yet")
        expect(turn(page)).to_contain_text("Could not save to memory.")
        page.goto("/admin/jobs")
        expect(page.get_by_role("row", name=re.compile("400"))).to_have_count(1)

        endpoint.script("broken")
        page.get_by_role("button", name="Retry").first.click()
        wait_for(
            lambda: cato.sql("SELECT count(*) FROM memory_embeddingjob WHERE state = 'done'") == [(1,)], "the retry"
        )


def test_the_current_tab_is_in_view_on_a_phone(administrator, visit):
    page = visit(administrator, "/admin/audit", viewport={"width": 390, "height": 800})
    expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0

"""The sources of an answer in the browser: cited passages first, opened in place, from the keyboard as well."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.server import wait_for

MEMORIES = [
    "The greenhouse key hangs behind the clock in the hall.",
    "The second key to the greenhouse lies in the blue tin on the shelf.",
    "The greenhouse key was copied twice in the spring by the locksmith.",
]
QUESTION = "Where are the keys to the greenhouse?"


@pytest.fixture
def memories(alice, endpoint) -> None:
    """Let Alice say three things about the same key, each in a thread of its own."""
    endpoint.script(KEY, answer="Noted.")
    for message in MEMORIES:
        thread = alice.send_message(message)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")


def excerpts(page: Page, items: str) -> list[str]:
    return turn(page).locator(f"{items} .recall-item__excerpt").all_text_contents()


def test_the_summary_is_replaced_and_cited_passages_move_to_the_front_when_the_answer_is_complete(
    visit, alice, endpoint, memories
):
    page = visit(alice)
    endpoint.script(KEY, answer="Twice copied [3]. One is behind the clock [1], as [3] says.", token_delay=0.5)
    path = begin_thread(page, QUESTION)
    summary = turn(page).locator(".recall__panel > summary")
    expect(summary).to_have_text("3 recalled")
    before = summary.bounding_box()
    items = turn(page).locator(".recall-item")
    in_prompt = [items.nth(n).get_attribute("id") for n in range(3)]

    expect(summary).to_have_text(re.compile(r"Based on 2 sources\s+· 1 more recalled\s+from"))
    after = summary.bounding_box()
    assert before
    assert after
    assert (before["x"], before["y"]) == (after["x"], after["y"])
    expect(page.locator("#live-region")).to_have_text("Cato has answered. Based on 2 sources, 1 more recalled")
    summary.click()
    shown = turn(page).locator(".recall-item:visible")
    expect(shown).to_have_count(2)
    assert [shown.nth(n).get_attribute("id") for n in range(2)] == [in_prompt[2], in_prompt[0]]
    turn(page).locator(".recall__more > summary").click()
    expect(shown).to_have_count(3)
    # It has a number only if the text of another item names it.
    expect(
        turn(page).locator(".recall__list--others > :not([data-mentioned]) .recall-item__number:visible")
    ).to_have_count(0)
    expect(shown.nth(2)).to_contain_text("not cited", use_inner_text=True)
    expect(shown.nth(0)).not_to_contain_text("not cited", use_inner_text=True)

    fresh = visit(alice, path)
    assert excerpts(fresh, ".recall__panel") == excerpts(page, ".recall__panel")


def test_nothing_moves_in_a_panel_that_is_open_when_the_answer_ends(visit, alice, endpoint, memories):
    page = visit(alice)
    endpoint.script(KEY, answer="Twice copied [3].", token_delay=0.4)
    begin_thread(page, QUESTION)
    summary = turn(page).locator(".recall__panel > summary")
    summary.focus()
    page.keyboard.press("Enter")
    items = turn(page).locator(".recall-item:visible")
    expect(items).to_have_count(3)
    before = [items.nth(n).get_attribute("id") for n in range(3)]
    items.nth(1).locator("summary").first.click()
    summary.focus()

    expect(summary).to_contain_text("Based on 1 source")
    expect(summary).to_be_focused()
    assert [items.nth(n).get_attribute("id") for n in range(3)] == before
    expect(items.nth(1).locator("details").first).to_have_attribute("open", "")
    page.keyboard.press("Enter")
    expect(items).to_have_count(0)
    expect(turn(page).locator(".recall__list").first.locator(".recall-item")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(items).to_have_count(1)
    assert items.first.get_attribute("id") == before[2]


def test_a_panel_stays_open_when_a_newer_version_of_its_turn_arrives(visit, alice, endpoint, memories):
    endpoint.script(KEY, answer="Twice copied [3].")
    thread = alice.send_message(QUESTION)
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the answer to be remembered")
    held = []
    page = visit(alice)

    def hold(socket):
        server = socket.connect_to_server()
        socket.on_message(lambda message: held.append((server, message)))

    page.route_web_socket(f"**/ws/**{thread}**", hold)
    page.goto(f"/t/{thread}")
    turn(page).locator(".recall__panel > summary").click()
    turn(page).evaluate("node => { node.isOld = true; }")
    [(server, message)] = held
    server.send(re.sub(r": ?\d+", ": 0", message))
    wait_for(lambda: not turn(page).evaluate("node => node.isOld"), "the newer version")
    expect(turn(page).locator(".recall-item:visible")).to_have_count(1)


def test_an_answer_without_citations_says_so(visit, alice, endpoint, memories):
    page = visit(alice)
    endpoint.script(KEY, answer="I do not know.", token_delay=0.1)
    path = begin_thread(page, QUESTION)
    expect(turn(page).locator(".recall__panel > summary")).to_have_text("3 recalled, none cited")
    fresh = visit(alice, path)
    for opened in (page, fresh):
        turn(opened).locator(".recall__panel > summary").click()
        expect(turn(opened).locator(".recall-item:visible")).to_have_count(3)
    assert excerpts(fresh, ".recall__panel") == excerpts(page, ".recall__panel")


@pytest.fixture
def cited(visit, alice, endpoint, memories):
    """Open an answer with three citations in two paragraphs, in a window of the given size; return its page."""
    filling = "There is more to say about keys. " * 12
    endpoint.script(KEY, answer=f"It was copied [3], and one hangs there [1].\n\n{filling}\n\nAs was said [3].")
    thread = alice.send_message(QUESTION)
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the answer to be remembered")

    def open_page(width: int = 1280, height: int = 860, **options) -> Page:
        page = visit(alice, f"/t/{thread}", viewport={"width": width, "height": height}, **options)
        expect(turn(page).locator("a.citation")).to_have_count(3)
        return page

    return open_page


def text_of(citation) -> str:
    """Return the beginning of the text of the item to which a citation belongs."""
    item = citation.page.locator(f"[id='{(citation.get_attribute('href') or '')[1:]}']")
    text = (item.locator(".recall-item__text").text_content() or "").strip()
    assert text
    return text[:30]


def middle(locator) -> float:
    box = locator.bounding_box()
    assert box
    return box["y"] + box["height"] / 2


def test_a_citation_opens_its_source_level_with_its_line_and_closes_with_a_second_click(cited):
    page = cited()
    url, scrolled = page.url, page.evaluate("scrollY")
    first, last = turn(page).locator("a.citation").first, turn(page).locator("a.citation").last
    expect(first).to_have_accessible_name(re.compile(r"^Source 3: The "))

    last.click()
    card = turn(page).locator(".source-card")
    expect(card).to_be_visible()
    expect(last).to_have_attribute("aria-expanded", "true")
    expect(first).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#live-region")).to_have_text("Source 3 opened")
    expect(card.get_by_role("link", name="Open thread")).to_be_visible()
    expect(card.get_by_role("button", name="Not relevant")).to_be_visible()
    assert abs(middle(card.locator(".recall-item__number")) - middle(last)) < 6
    assert (page.url, page.evaluate("scrollY")) == (url, scrolled)

    turn(page).locator("a.citation").nth(1).click()
    expect(card).to_have_count(1)
    expect(last).to_have_attribute("aria-expanded", "false")
    summary, box = turn(page).locator(".recall__panel > summary").bounding_box(), card.bounding_box()
    assert summary
    assert box
    assert box["y"] >= summary["y"] + summary["height"], "a card never covers the summary line"
    turn(page).locator("a.citation").nth(1).click()
    expect(card).to_have_count(0)
    assert (page.url, page.evaluate("scrollY")) == (url, scrolled)


def test_a_source_is_opened_and_left_with_the_keyboard(cited):
    page = cited()
    citation = turn(page).locator("a.citation").nth(1)
    card = turn(page).locator(".source-card")
    for key in ("Enter", " "):
        citation.focus()
        page.keyboard.press(key)
        expect(card).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(card).to_have_accessible_name(re.compile("^Source 3"))
        expect(card).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(card).to_have_accessible_name(re.compile("^Source 1"))
        page.keyboard.press("Escape")
        expect(card).to_have_count(0)
        expect(citation).to_be_focused()

    citation.press("Enter")
    expect(card.get_by_role("button", name="Pin")).to_be_visible()
    page.keyboard.press("p")
    expect(card.get_by_role("button", name="Unpin")).to_be_visible()
    page.keyboard.press("p")
    expect(card.get_by_role("button", name="Pin", exact=True)).to_be_visible()
    page.keyboard.press("f")
    expect(page.get_by_role("dialog").filter(has_text="Forget this exchange?")).to_be_visible()


def test_a_preview_is_shown_on_hover_and_on_focus(cited):
    page = cited()
    preview = page.get_by_role("tooltip")
    citation = turn(page).locator("a.citation").last
    citation.hover()
    expect(preview).to_contain_text(text_of(citation))
    expect(citation).to_have_attribute("aria-describedby", "citation-preview")
    preview.hover()
    page.wait_for_timeout(400)
    expect(preview).to_be_visible()
    page.mouse.move(10, 400)
    expect(preview).to_be_hidden()

    page.keyboard.press("Tab")
    citation.focus()
    expect(preview).to_be_visible()
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    expect(citation).to_be_focused()
    assert "Source 3" in (citation.get_attribute("aria-label") or "")


def test_escape_closes_a_preview_before_it_stops_an_answer(cited, endpoint):
    page = cited()
    endpoint.script(KEY, answer="word " * 400, token_delay=0.2)
    send_message(page, "Tell me more")
    expect(page.locator(".send-button--stop")).to_be_visible()
    preview = page.get_by_role("tooltip")
    stops: list[str] = []
    page.on("request", lambda request: stops.append(request.url) if request.url.endswith("/stop") else None)
    page.keyboard.press("Tab")
    turn(page, 0).locator("a.citation").last.focus()
    expect(preview).to_be_visible()

    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    assert not stops
    page.keyboard.press("Escape")
    expect(page.locator("#live-region")).to_have_text(re.compile("^Stopped by Alice Owner"))


def test_in_an_open_panel_a_citation_opens_the_item_and_opening_the_panel_takes_the_card_in(cited):
    page = cited()
    turn(page).locator("a.citation").last.click()
    expect(turn(page).locator(".source-card")).to_be_visible()

    turn(page).locator(".recall__panel > summary").click()
    expect(turn(page).locator(".source-card")).to_have_count(0)
    opened = turn(page).locator(".recall-item:has(> details[open])")
    expect(opened).to_contain_text(text_of(turn(page).locator("a.citation").last))
    expect(turn(page).locator("a.citation").last).to_have_attribute("aria-expanded", "true")
    turn(page).locator("a.citation").nth(1).click()
    expect(opened).to_have_count(1)
    expect(opened).to_contain_text(text_of(turn(page).locator("a.citation").nth(1)))
    opened.locator("summary").first.focus()
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    expect(turn(page).locator("a.citation").nth(1)).to_be_focused()


def test_the_keys_of_the_panel(cited):
    page = cited()
    summary = turn(page).locator(".recall__panel > summary")
    summary.focus()
    page.keyboard.press("Enter")
    items = turn(page).locator(".recall-item > :first-child > summary:visible")
    expect(items).to_have_count(2)
    page.keyboard.press("Tab")
    expect(items.nth(0)).to_be_focused()
    for key, index in (("ArrowDown", 1), ("ArrowUp", 0), ("End", 1), ("Home", 0), ("End", 1)):
        page.keyboard.press(key)
        expect(items.nth(index)).to_be_focused()
    expect(turn(page).locator("[aria-keyshortcuts=n]")).to_have_count(3)
    page.keyboard.press("n")
    expect(turn(page).get_by_text("Not relevant: not recalled for you.").locator("visible=true")).to_have_count(1)
    page.keyboard.press("n")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(items.nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(summary).to_be_focused()
    expect(items).to_have_count(0)


@pytest.mark.parametrize("width", [1024, 820])
def test_on_a_tablet_the_card_opens_below_its_paragraph_and_the_text_below_makes_room(cited, width):
    page = cited(width, 700)
    page.evaluate("scrollTo(0, 0)")
    citation, paragraphs = turn(page).locator("a.citation").first, turn(page).locator(".answer p")
    line, below = middle(citation), middle(paragraphs.nth(1))
    citation.click()
    card = turn(page).locator(".source-card")
    expect(card.get_by_role("button", name="Pin")).to_be_visible()
    assert middle(citation) == line, "the line that is read does not move"

    def is_between_the_paragraphs() -> bool:
        box = card.bounding_box() or {"y": 0, "height": 0}
        bottom = box["y"] + box["height"]
        return middle(paragraphs.nth(0)) <= box["y"] and bottom <= middle(paragraphs.nth(1))

    wait_for(is_between_the_paragraphs, "the text to make room for the buttons")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    assert middle(paragraphs.nth(1)) == below
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_on_a_phone_the_source_is_a_modal_sheet(cited):
    page = cited(390, 844, has_touch=True, is_mobile=True)
    turn(page).locator("a.citation").nth(1).tap()
    sheet = page.get_by_role("dialog", name=re.compile("^Source 1"))
    expect(sheet).to_be_visible()
    assert sheet.evaluate("node => node.matches(':modal')")
    expect(sheet).to_contain_text(text_of(turn(page).locator("a.citation").nth(1)))
    expect(sheet.locator(".source-card__count")).to_have_text("2 of 2")
    links = sheet.locator(".link-row :is(a, button)")
    expect(links.first).to_be_visible()
    assert all((links.nth(n).bounding_box() or {"height": 0})["height"] >= 44 for n in range(links.count()))
    sheet.locator(".source-card__count").tap()
    expect(page.get_by_role("dialog", name=re.compile("^Source 3"))).to_be_visible()
    page.touchscreen.tap(195, 60)
    expect(page.locator(".source-card")).to_have_count(0)
    assert "#" not in page.url


def test_on_a_phone_a_swipe_shows_the_next_source_or_closes_the_sheet(cited):
    page = cited(390, 844, has_touch=True, is_mobile=True)
    devtools = page.context.new_cdp_session(page)

    def swipe(across: int, down: int) -> None:
        box = page.locator(".source-card").bounding_box() or {"x": 0, "y": 0}
        x, y = box["x"] + 180, box["y"] + 20
        for kind, points in (
            ("touchStart", [{"x": x, "y": y}]),
            ("touchMove", [{"x": x + across, "y": y + down}]),
            ("touchEnd", []),
        ):
            devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    # The first card loads the script that reads swipes, and then rises.
    with page.expect_response(re.compile("source-sheet")) as loaded:
        turn(page).locator("a.citation").nth(1).tap()
    loaded.value.finished()
    count = page.locator(".source-card__count")
    expect(count).to_have_text("2 of 2")
    page.locator(".source-card").evaluate("card => Promise.all(card.getAnimations().map((each) => each.finished))")
    swipe(100, 10)
    expect(count).to_have_text("1 of 2")
    swipe(-100, 10)
    expect(count).to_have_text("2 of 2")
    swipe(40, 50)
    expect(count).to_have_text("2 of 2")
    swipe(10, 100)
    expect(page.locator(".source-card")).to_have_count(0)


def test_without_scripts_a_citation_leads_to_its_item_on_the_page(cited):
    page = cited(java_script_enabled=False)
    url = page.url
    turn(page).locator("a.citation").first.click()
    assert page.url.startswith(f"{url}#turn-")
    item = page.locator(f"[id='{page.url.partition('#')[2]}']")
    expect(item).to_contain_text(text_of(turn(page).locator("a.citation").first))
    expect(item).to_be_in_viewport()


def test_a_card_stays_open_while_its_paragraph_grows(visit, alice, endpoint, memories):
    page = visit(alice)
    endpoint.script(KEY, answer="It was copied [3].\nAnd then " + "so on and " * 12 + "[1].", token_delay=0.15)
    begin_thread(page, QUESTION)
    citation = turn(page).locator("a.citation").first
    expect(citation).to_be_visible()
    page.evaluate("document.querySelector('article.turn a.citation').click()")  # at once, before it is replaced
    card = turn(page).locator(".source-card")
    text = text_of(citation)
    expect(card).to_contain_text(text)
    wait_for_answer(page)
    expect(card).to_contain_text(text)
    expect(citation).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)


def test_the_source_is_a_sentence_and_the_similarity_is_shown_on_request(cited):
    page = cited()
    turn(page).locator("a.citation").last.click()
    card = turn(page).locator(".source-card")
    expect(card.locator(".recall-item__source")).to_have_text(re.compile(r"You said in\s+The .+,\s+\d+ \w+"))
    expect(card.locator(".recall-item__why > summary")).to_have_text(re.compile(r"Contains “.+”"))
    expect(card.locator(".similarity")).to_be_hidden()
    card.locator(".recall-item__why > summary").click()
    expect(card.locator(".similarity")).to_have_text(re.compile(r"Similarity\s+\.\d\d"))
    expect(card).to_be_visible()


def test_an_expanded_table_shares_the_margin_with_its_summary_and_with_nothing_else(visit, alice, endpoint, memories):
    columns = "| key | " + " | ".join(f"measure {n}" for n in range(1, 12)) + " |\n" + "|-" * 12 + "|\n"
    endpoint.script(KEY, answer=f"{columns}| clock |{' 1.100 mm |' * 11}\n\nOne is behind the clock [1].")
    page = visit(alice, viewport={"width": 1280, "height": 800})
    begin_thread(page, QUESTION)
    wait_for_answer(page)
    expand = turn(page).get_by_role("button", name="Expand")
    expand.click()
    expect(expand).to_have_attribute("aria-expanded", "true")
    summary = turn(page).locator(".recall__panel > summary").bounding_box()
    assert summary["y"] + summary["height"] <= turn(page).locator(".answer__table").first.bounding_box()["y"]

    citation = turn(page).locator("a.citation")
    citation.click()
    expect(page.locator(".source-card")).to_be_visible()
    expect(expand).to_have_attribute("aria-expanded", "false")
    expand.click()
    expect(page.locator(".source-card")).to_have_count(0)
    expect(expand).to_have_attribute("aria-expanded", "true")
    expect(expand).to_be_focused()
    turn(page).locator(".recall__panel > summary").click()
    expect(expand).to_have_attribute("aria-expanded", "false")


def test_an_open_item_says_its_rank_and_its_uses_and_what_is_done_is_announced(cited):
    page = cited()
    with page.expect_request("**/recalled"):
        turn(page).locator(".recall__panel > summary").click()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    item = turn(page).locator(".recall-item").first
    expect(item.locator(".recall-item__uses")).to_be_hidden()
    assert not any("/uses" in url for url in requests)
    item.locator("summary").first.click()
    expect(item.locator(".recall-item__uses")).to_have_text("Used in 1 answer")
    item.locator(".recall-item__why > summary").click()
    expect(item.locator(".similarity")).to_have_text(re.compile(r"Similarity\s+\.\d\d, rank [123] of 3 recalled"))
    item.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator("#live-region")).to_have_text("Pinned for you.")
    item.get_by_role("button", name="Not relevant").click()
    expect(page.locator("#live-region")).to_have_text("Not relevant: not recalled for you.")
    expect(item.get_by_role("button", name="Undo")).to_be_focused()


def test_the_citation_of_a_superseded_message_is_marked_at_once(visit, alice, endpoint):
    endpoint.script(KEY, answer="Noted.")
    for message in (
        "The door code of the bike cellar is 4471.",
        "The boiler was serviced.",
        "They changed the code of the bike cellar, it is 9025.",
    ):
        thread = alice.send_message(message)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")
    endpoint.script(KEY, answer="It was [2], now [1].")
    page = visit(alice, f"/t/{alice.send_message('What is the code of the bike cellar?')}")
    wait_for_answer(page)
    earlier = turn(page).locator("a.citation[data-source='2']")
    page.get_by_role("link", name="Source 2").click()
    card = page.locator(".source-card")
    card.get_by_role("button", name="Superseded").click()
    expect(earlier).to_have_class("citation citation--superseded")
    expect(earlier).to_have_attribute("aria-label", re.compile(r"Source 2, superseded \w+ \w+"))
    expect(earlier).to_have_attribute("aria-expanded", "true")
    card.get_by_role("button", name="Undo").click()
    expect(earlier).to_have_class("citation")
    expect(card).to_be_visible()

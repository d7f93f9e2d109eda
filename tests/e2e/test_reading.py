"""Reading an answer: tables, half-written Markdown, citations, failures and the place of one's own message."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.server import wait_for

MONTHS = ("Buoy", "January", "February", "March", "April", "May", "June", "July", "August", "September")
ROWS = ("Kiel 7", "Kiel 9", "Flensburg 12")
TABLE = "\n".join(
    [f"| {' | '.join(MONTHS)} |", "|---" + "|--:" * 9 + "|"]
    + [f"| {row} | {' | '.join(str(row_number * 100 + n) for n in range(9))} |" for row_number, row in enumerate(ROWS)]
)
SMALL_TABLE = "| Day | Litres |\n|---|--:|\n| Monday | 12 |"


def open_answer(page: Page, question: str = "Show me") -> Locator:
    begin_thread(page, question)
    wait_for_answer(page)
    return turn(page).locator(".answer")


def style(place: Locator, name: str, pseudo: str | None = None) -> str:
    return str(
        place.evaluate(
            "(node, [name, pseudo]) => getComputedStyle(node, pseudo).getPropertyValue(name)", [name, pseudo]
        )
    )


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_wide_table_scrolls_by_arrow_keys_in_its_own_region_beside_its_first_column(visit, alice, endpoint, width):
    endpoint.script(KEY, answer=f"The buoys:\n\n{TABLE}\n\nAnd:\n\n{SMALL_TABLE}\n\n```\n{'wide ' * 200}\n```")
    page = visit(alice, viewport={"width": width, "height": 900})
    open_answer(page)
    region = page.get_by_role("group", name="Table, 10 columns")
    expect(region).to_be_visible()
    first = region.locator("td").first
    place = first.bounding_box()
    assert place
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    # The turn is replaced if the page is synchronised at this moment.
    page.wait_for_function(
        "() => { const node = document.querySelector('.answer pre'); return node.scrollWidth > node.clientWidth }"
    )
    assert style(region, "--table-fade") == "48px"
    assert style(first, "opacity", "::after") == "0"

    region.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("node => node.scrollLeft >= 60", arg=region.element_handle())
    assert first.bounding_box()["x"] == place["x"]
    assert page.evaluate("() => scrollX") == 0
    region.evaluate("node => { node.scrollLeft = node.scrollWidth }")
    expect(region.locator("td").nth(9)).to_be_in_viewport(ratio=0.9)
    expect(region).to_have_css("--table-fade", "0px")
    assert style(first, "opacity", "::after") == "1"
    assert first.bounding_box()["x"] == place["x"]


def test_a_table_that_fits_has_no_fade_and_no_tab_stop(visit, alice, endpoint):
    endpoint.script(KEY, answer=SMALL_TABLE)
    table = open_answer(visit(alice)).locator(".answer__table")

    assert style(table, "--table-fade") == "0px"
    assert table.get_attribute("tabindex") is None


HALF_WRITTEN = """() => {
  window.shown = new Set();
  new MutationObserver(() => {
    const streaming = [...document.querySelectorAll(".answer__streaming")].at(-1);
    if (streaming) shown.add(streaming.innerText);
  }).observe(document.getElementById("turns"), { childList: true, subtree: true, characterData: true });
}"""


def test_no_marker_is_shown_while_an_answer_streams(visit, alice, endpoint):
    page = visit(alice)
    open_answer(page, "Hello")
    endpoint.script(
        KEY,
        answer="The **tap is behind** the *old clock* and `turns left`, says [the plan](https://a.example/plan).\n\n"
        "| Day | Litres |\n|---|--:|\n| Monday | **12** |\n",
        token_delay=0.1,
    )
    page.evaluate(HALF_WRITTEN)
    send_message(page, "How do we water?")

    expect(turn(page).locator(".answer__streaming")).to_contain_text("The tap is behind the old clock")
    expect(turn(page).locator(".answer__blocks td").nth(1)).to_have_text("12")
    shown = page.evaluate("() => [...shown]")
    assert any("turns" in text and "plan" not in text for text in shown)
    assert [text for text in shown if any(marker in text for marker in "*`[|")] == []


MEMORIES = [
    "The greenhouse key hangs behind the clock in the hall.",
    "The second key to the greenhouse lies in the blue tin on the shelf.",
]
QUESTION = "Where are the keys to the greenhouse?"
# The widths at which a citation is not in the line of the last character before it.
LONELY_CITATIONS = """answer => {
  const lonely = [];
  for (let width = 180; width < 420; width += 4) {
    answer.style.inlineSize = `${width}px`;
    for (const citation of answer.querySelectorAll("a.citation")) {
      const texts = document.createTreeWalker(citation.closest("p"), NodeFilter.SHOW_TEXT);
      let before = null;
      while (texts.nextNode() && !citation.contains(texts.currentNode)) {
        const length = texts.currentNode.data.trimEnd().length;
        if (length) before = [texts.currentNode, length];
      }
      const range = document.createRange();
      range.setStart(before[0], before[1] - 1);
      range.setEnd(...before);
      if (range.getBoundingClientRect().bottom < citation.getBoundingClientRect().top) lonely.push(width);
    }
  }
  answer.style.inlineSize = "";
  return lonely;
}"""


@pytest.fixture
def memories(alice, endpoint) -> None:
    endpoint.script(KEY, answer="Noted.")
    for message in MEMORIES:
        thread = alice.send_message(message)
        wait_for(lambda thread=thread: "Remembered</span>" in alice.thread_page(thread), "the message to be remembered")


def test_a_citation_is_never_alone_in_a_line_and_a_copied_answer_is_plain(visit, alice, endpoint, memories):
    endpoint.script(
        KEY,
        answer="The key hangs behind the clock [1], the other in a tin?[2] Both [1][2] are **labelled** [2].\n\n"
        "钥匙挂在大厅的时钟后面。[1]另一把在架子上的蓝色罐子里。[2]",
    )
    page = visit(alice)
    answer = open_answer(page, QUESTION)

    expect(answer.locator("a.citation")).to_have_count(7)
    assert answer.evaluate(LONELY_CITATIONS) == []
    copied = answer.locator("p").first.inner_text()
    assert copied == "The key hangs behind the clock 1, the other in a tin?2 Both 12 are labelled 2."


@pytest.mark.parametrize("width", [820, 1024, 1180])
def test_a_source_card_covers_neither_its_line_nor_the_text_below(visit, alice, endpoint, memories, width):
    endpoint.script(
        KEY,
        answer="Behind the clock [1].\n\n| Key | Place |\n|---|---|\n| second | in the tin [2] |\n\nThat is all.",
    )
    page = visit(alice, viewport={"width": width, "height": 900})
    answer = open_answer(page, QUESTION)
    for number in range(2):
        answer.locator("a.citation").nth(number).click()
        card = page.locator(".source-card")
        expect(card).to_be_visible()
        page.wait_for_timeout(300)  # the card's animation
        box = card.bounding_box()
        for place in answer.locator("p, td, th").all():
            text = place.bounding_box()
            assert text["y"] + text["height"] <= box["y"] or text["y"] >= box["y"] + box["height"]


def test_ones_own_message_is_in_view_after_it_is_sent_from_anywhere(visit, alice, endpoint, memories):
    endpoint.script(KEY, answer="Behind the clock [1].\n\n" + "A long answer goes on.\n\n" * 60)
    page = visit(alice, viewport={"width": 1280, "height": 800})
    answer = open_answer(page, QUESTION)
    page.evaluate("() => scrollTo(0, 0)")
    answer.locator("a.citation").first.click()
    expect(page.locator(".source-card")).to_be_visible()
    page.wait_for_timeout(500)
    endpoint.script(KEY, answer="Yes.", first_delay=3)
    send_message(page, "\n".join(f"Line {n}" for n in range(12)))

    message = turn(page, 1).locator(".turn__message-text")
    expect(message).to_be_in_viewport(ratio=1)
    expect(turn(page, 1).locator(".answer__phase")).to_be_visible()
    expect(message).to_be_in_viewport(ratio=1)


def test_a_failure_has_the_font_of_the_interface(visit, alice, endpoint):
    endpoint.script(KEY, mode="error-500")
    page = visit(alice)
    begin_thread(page, "Will you answer?")
    status = turn(page).locator(".turn__status--failed")
    expect(status).to_be_visible()
    interface = page.locator(".sidebar a").first

    for part in (status.locator(".turn__status-text"), status.locator("button").first):
        assert style(part, "font-family") == style(page.locator("body"), "font-family")
    assert style(status.locator(".turn__status-text"), "font-size") == style(interface, "font-size")


@pytest.mark.parametrize("width", [320, 1280])
def test_a_formula_is_not_wider_than_its_line(visit, alice, endpoint, width):
    lengths = (
        r"\hspace{5000px}",
        r"\rule{5000px}{1px}",
        r"\hspace{5000em}",
        r"\rule{400em}{1em}",
        r"\hspace{19em}" * 9,
    )
    formulas = "\n\n".join(rf"Inline ${length} x$ and" + f"\n\n$$\nx {length}\n$$" for length in lengths)
    endpoint.script(KEY, answer=formulas)
    page = visit(alice, viewport={"width": width, "height": 900})
    answer = open_answer(page)

    expect(answer.locator("math")).to_have_count(10)
    limit = answer.bounding_box()
    for box in answer.locator(".answer__inline-math, .answer__math").all():
        place = box.bounding_box()
        assert place["x"] + place["width"] <= limit["x"] + limit["width"] + 0.5
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

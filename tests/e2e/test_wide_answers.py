"""No content of an answer or note widens the page, live and after a reload."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import KEY, begin_thread, tab_to, turn, wait_for_answer
from tests.e2e.test_streaming import DRAWN

FORMULAS = (
    r"Wide $\hspace{100000em}x$, black $\rule{100000em}{100000em}$, high $\rule{1em}{400em}$, long $" + "x+" * 400 + r"x$, "
    r"unread $\nothing{" + "y" * 900 + r"$, in brackets \(" + "z" * 500 + r"\), rows $\begin{matrix}"
    + r"a\\" * 300 + r"\end{matrix}$ and small $x_1$."
)  # fmt: skip
WORDS = "\n\n".join(
    (
        "W" * 3000,
        "`" + "c" * 3000 + "`",
        "[" + "l" * 2000 + "](https://example.org/" + "p" * 2000 + ")",
        "# " + "H" * 900,
        "> " + "q" * 900,
        "- " + "i" * 900,
        "| " + " | ".join(["column"] * 60) + " |\n" + "|-" * 60 + "|",
        "$$" + "m+" * 300 + "m$$",
        "```\n" + "k" * 5000 + "\n```",
        "\u00a0".join(["no"] * 800),
    )
)
SIZE = """() => { const root = document.documentElement;
  return [root.scrollWidth - root.clientWidth, root.scrollHeight]; }"""


def assert_fits(page: Page, highest: int = 40_000) -> None:
    too_wide, height = page.evaluate(SIZE)
    assert too_wide <= 0
    assert height < highest


def test_formulas_and_long_words_stay_in_their_line(visit, alice, endpoint):
    endpoint.script(KEY, answer=f"{FORMULAS}\n\n{WORDS}")
    for width in (390, 1280):
        page = visit(alice, "/", viewport={"width": width, "height": 900})
        begin_thread(page, "Show me everything that is wide")
        wait_for_answer(page)
        assert_fits(page)
        page.reload()
        expect(turn(page).locator("math").first).to_be_visible()
        assert_fits(page)


def test_a_small_formula_is_inline_and_does_not_scroll(visit, alice, endpoint):
    endpoint.script(KEY, answer=r"So $\frac{a}{b}$, $\sqrt{x^2}$, $\hat{x}$, $\sum_{i=1}^n i$ and $x_1$ it is.")
    page = visit(alice)
    begin_thread(page, "Some formulas")
    wait_for_answer(page)
    scrolling, offset = page.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll(".answer__inline-math")];
          const last = boxes.at(-1).getBoundingClientRect();
          const line = boxes.at(-1).closest("p").getBoundingClientRect();
          return [boxes.filter((box) => box.scrollWidth > box.clientWidth).length,
                  last.bottom - line.bottom];
        }"""
    )
    assert scrolling == 0
    assert offset <= 0


def test_a_formula_of_its_own_is_not_cut_off_above_or_below(visit, alice, endpoint):
    endpoint.script(KEY, answer=r"$$ \sum_{i=1}^{n} \frac{a_0}{b_0+c} $$")
    page = visit(alice)
    begin_thread(page, "A sum")
    wait_for_answer(page)
    hidden = page.locator(".answer__math").evaluate("box => box.scrollHeight - box.clientHeight")
    above = page.evaluate(
        """() => document.querySelector(".answer__math mfrac").getBoundingClientRect().top
                 - document.querySelector(".answer__math").getBoundingClientRect().top"""
    )
    assert hidden <= 0
    assert above >= 2


def test_the_page_of_a_note_is_not_wider_than_the_window(visit, alice):
    with alice.api_client() as api_client:
        stored = api_client.post("/api/exchanges", json={"text": WORDS[:9000] + "<b>" * 900 + "/" * 4000})
        row = stored.json()["exchanges"][0]
    for width in (390, 1280):
        page = visit(alice, f"/m/{row['id']}", viewport={"width": width, "height": 900})
        expect(page.locator(".exchange__text").first).to_be_visible()
        assert_fits(page)


def test_a_long_open_block_is_sent_in_segments_and_ends_like_the_reloaded_page(visit, alice, endpoint):
    lines = "".join(f"line {number} of the code\n" for number in range(600))
    endpoint.script(KEY, answer=f"Here:\n\n```\n{lines}```\n\nThat was it.", token_delay=0.001)
    page = visit(alice)
    begin_thread(page, "A long listing")
    expect(turn(page).locator(".answer__segments > pre").nth(1)).to_be_visible()
    wait_for_answer(page)
    expect(turn(page).locator(".answer__segments")).to_be_empty()
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    live = page.evaluate(DRAWN)
    assert "line 599" in live
    page.reload()
    assert page.evaluate(DRAWN) == live


def test_a_long_message_is_folded_until_it_is_asked_for_or_linked_to(visit, alice, endpoint):
    endpoint.script(KEY, answer="Twenty lines.")
    page = visit(alice)
    path = begin_thread(page, "\n".join(f"line {number}" for number in range(1, 21)))
    wait_for_answer(page)
    page.goto(path)
    text = turn(page).locator(".turn__message-text")
    assert_folded(text)

    unfold = turn(page).locator(".turn__unfold summary")
    expect(unfold).to_have_text(re.compile("Show all 20 lines"))
    tab_to(page, unfold)
    page.keyboard.press("Enter")
    assert_whole(text)
    page.keyboard.press("Enter")
    assert_folded(text)

    page.goto(f"{path}#{turn(page).get_attribute('id')}")
    assert_whole(text)
    expect(unfold).to_be_hidden()


def assert_folded(text: Locator) -> None:
    expect(text).to_have_css("overflow-y", "hidden")
    assert text.bounding_box()["height"] == 144


def assert_whole(text: Locator) -> None:
    expect(text).to_have_css("overflow-y", "visible")
    assert text.evaluate("node => node.clientHeight >= node.scrollHeight")


WIDE_TABLE = "| part | " + " | ".join(f"measure {n}" for n in range(1, 12)) + " |\n" + "|-" * 12 + "|\n"
ROWS = "".join(f"| lid {row} |" + f" {row}.{row}00 mm |" * 11 + "\n" for row in range(1, 4))


def test_a_wide_table_is_copied_and_expanded(visit, alice, endpoint):
    endpoint.script(KEY, answer=f"First:\n\n{WIDE_TABLE}{ROWS}\n| a | b |\n|-|-|\n| small | one |\n\nThat is it.")
    page = visit(alice, viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"])
    path = begin_thread(page, "Show the measures")
    wait_for_answer(page)
    expand = turn(page).get_by_role("button", name="Expand")
    expect(expand).to_have_count(1)
    page.goto(path)
    region = turn(page).get_by_role("group", name="Table, 12 columns")
    expect(expand).to_have_count(1)
    narrow = region.bounding_box()["width"]
    expand.press("Enter")
    expect(expand).to_have_attribute("aria-expanded", "true")
    assert region.bounding_box()["width"] > narrow + 250
    assert_fits(page)
    expand.click()
    expect(expand).to_have_attribute("aria-expanded", "false")
    assert region.bounding_box()["width"] == narrow

    turn(page).locator("[data-copy=table]").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    html, text = page.evaluate(
        """async () => {
          const [item] = await navigator.clipboard.read();
          const read = async (type) => (await item.getType(type)).text();
          return [await read("text/html"), await read("text/plain")];
        }"""
    )
    lines = text.split("\n")
    assert lines[0].split("\t")[:2] == ["part", "measure 1"]
    assert lines[1].split("\t")[:2] == ["lid 1", "1.100 mm"]
    assert len(lines) == 4
    assert html.count("<tr") == 4
    turn(page).get_by_role("button", name="Copy the answer").click()
    assert "Expand" not in page.evaluate("navigator.clipboard.readText()")

    for width in (800, 390):
        page.set_viewport_size({"width": width, "height": 800})
        expect(turn(page).locator("[data-copy=table]")).to_be_visible()
        expect(expand).to_be_hidden()


def test_an_answer_is_copied_with_the_text_around_its_code(visit, alice, endpoint):
    endpoint.script(
        KEY,
        answer="1. Build it:\n\n   ```sh\n   make\n   ```\n\n2. Run it.\n\n> Or so:\n>\n> ```sh\n> make run\n> ```\n\n"
        "```sh\nmake test\n```\n\nThat is all.",
    )
    page = visit(alice, permissions=["clipboard-read", "clipboard-write"])
    begin_thread(page, "How do I build it?")
    wait_for_answer(page)
    turn(page).get_by_role("button", name="Copy the answer").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()

    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    copied = [line.strip() for line in lines if line.strip()]
    assert copied == ["Build it:", "make", "Run it.", "Or so:", "make run", "make test", "That is all."]
    expect(turn(page).locator(".code-block__header:visible")).to_have_count(3)


def test_a_long_table_has_its_controls_once_and_is_copied_whole(visit, alice, endpoint):
    rows = "".join(f"| lid {row} |" + f" {row}.{row}00 mm |" * 11 + "\n" for row in range(1, 121))
    endpoint.script(KEY, answer=WIDE_TABLE + rows)
    page = visit(alice, viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"])
    begin_thread(page, "Show all measures")
    wait_for_answer(page)
    assert turn(page).locator(".answer__table[role]").count() > 1
    copy = turn(page).locator("[data-copy=table]")
    expect(copy).to_have_count(1)
    copy.click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert [line.split("\t")[0] for line in lines] == ["part", *(f"lid {row}" for row in range(1, 121))]

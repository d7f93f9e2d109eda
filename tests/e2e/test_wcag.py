"""Criteria of WCAG 2.2 that axe-core does not check: text spacing, and the focus below bars that stay in place."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.e2e.test_accessibility import overflowing

PAGES = ["/", "/search?q=greenhouse", "/documents", "/notes", "/knowledge", "/settings", "/threads", "/admin/people"]
# The spacing that a reader may set: https://www.w3.org/TR/WCAG22/#text-spacing
SPACING = """* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; }
p { margin-block-end: 2em !important; }"""
# The content policy of the pages allows no style element.
SET_STYLE = """text => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [sheet];
}"""
# Labels of controls that are cut off, without those that are shortened on purpose and have the whole text as title.
CUT_OFF = """() => [...document.querySelectorAll("button, .button, label, h1, h2, th, summary, .tabs a")]
  .filter((node) => node.checkVisibility() && !node.closest(".visually-hidden, [title], .table-scroll"))
  .filter((node) => getComputedStyle(node).overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1)
  .map((node) => node.outerHTML.slice(0, 160))"""
# Whether nothing of the focused element can be seen: each of its corners and its middle is outside or below another.
IS_HIDDEN = """() => {
  const node = document.activeElement;
  const { left, right, top, bottom } = node.getBoundingClientRect();
  const points = [[left + 2, top + 2], [right - 2, top + 2], [left + 2, bottom - 2], [right - 2, bottom - 2],
    [(left + right) / 2, (top + bottom) / 2]];
  return node !== document.body && !points.some(([x, y]) => {
    const above = document.elementFromPoint(x, y);
    return above && (node.contains(above) || above.contains(node) || above.closest("label")?.control === node);
  });
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_with_wide_spacing_nothing_is_cut_off(administrator, visit, width):
    page = visit(administrator, "/", viewport={"width": width, "height": 800})
    thread = begin_thread(page, "Where is the key to the greenhouse?")
    wait_for_answer(page)
    found = []
    for path in [thread, *PAGES]:
        page.goto(path)
        page.evaluate(SET_STYLE, SPACING)
        found += overflowing(page) + [f"{path}: {cut}" for cut in page.evaluate(CUT_OFF)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("width", "height"), [(1280, 700), (390, 700)])
def test_what_has_the_focus_is_never_entirely_covered(alice, visit, endpoint, width, height):
    endpoint.script(KEY, answer="\n\n".join(f"[Paragraph {n}](http://a.example/{n})" for n in range(40)))
    page = visit(alice, "/", viewport={"width": width, "height": height})
    begin_thread(page, "Where is the key to the greenhouse?")
    wait_for_answer(page)
    send_message(page, "And the spare one?")
    expect(turn(page).locator(".turn__message-text")).to_have_text("And the spare one?")
    wait_for_answer(page)
    hidden = []
    for key in ("Shift+Tab", "Tab"):
        for _ in range(120):
            page.keyboard.press(key)
            if page.evaluate(IS_HIDDEN):
                hidden.append(page.evaluate("document.activeElement.outerHTML.slice(0, 160)"))
    assert not hidden, "\n".join(hidden)

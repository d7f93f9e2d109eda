"""What axe does not check of WCAG 2.2 AA: text spacing, target size, obscured focus, labels in names and single-key shortcuts."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn, wait_for_answer
from tests.e2e.test_accessibility import ADMIN_PAGES, MEMBER_PAGES, overflowing

ANSWER = (
    "The key hangs **behind the clock**, see the [plan](http://a.example).\n\n```\nkey = 'clock'\n```\n\n"
    + "Line.\n\n" * 9
)
EXPERIMENTAL_RULES = ["label-content-name-mismatch", "css-orientation-lock", "table-fake-caption", "p-as-heading"]
# The values of success criterion 1.4.12. A style sheet of the script's own is not subject to the page's CSP.
SPACE_TEXT = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important; } p { margin-block-end: 2em !important; }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
# Returns what hides a part of its own text: the tag, the classes and the text.
CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((node) => {
  const ownText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (!ownText || !node.checkVisibility() || node.closest(".visually-hidden, option, svg, pre")) return false;
  for (let box = node; box && box !== document.body; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (style.display === "inline") continue;
    const hides = (overflow) => ["hidden", "clip"].includes(overflow);
    const isWide = box.scrollWidth > box.clientWidth + 1 && style.textOverflow !== "ellipsis";
    if (hides(style.overflowX) && isWide) return true;
    if (hides(style.overflowY) && box.scrollHeight > box.clientHeight + 2) return true;
  }
  return false;
}).map((node) => `${node.tagName} ${node.className} ${node.textContent.trim().slice(0, 60)}`)"""
# Returns the targets under 24 by 24 pixels whose circle of 24 pixels meets another target or its circle; a link
# in a sentence is exempt.
SMALL_TARGETS = """() => {
  const boxOf = (node) => {
    const pressed = [node, ...(node.labels ?? [])].filter((each) => each.checkVisibility());
    const boxes = pressed.map((each) => each.getBoundingClientRect());
    const left = Math.min(...boxes.map((box) => box.left)), top = Math.min(...boxes.map((box) => box.top));
    const right = Math.max(...boxes.map((box) => box.right)), bottom = Math.max(...boxes.map((box) => box.bottom));
    return { node, left, top, right, bottom, x: (left + right) / 2, y: (top + bottom) / 2 };
  };
  const isScrolledOut = (box) => {
    for (let list = box.node.parentElement; list && list !== document.body; list = list.parentElement) {
      const edge = list.getBoundingClientRect();
      const isOutside = box.y < edge.top || box.y > edge.bottom;
      if (isOutside && getComputedStyle(list).overflowY !== "visible") return true;
    }
    return false;
  };
  const isInSentence = (node) => node.matches("a") && getComputedStyle(node).display === "inline"
    && [...node.parentElement.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const targets = [...document.querySelectorAll("a[href], button, summary, select, textarea, input:not([type=hidden])")]
    .filter((node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !node.disabled)
    .filter((node) => !node.closest(".visually-hidden, .skip-link"))
    .map(boxOf).filter((box) => box.right - box.left > 1 && !isScrolledOut(box));
  const isSmall = (box) => Math.min(box.right - box.left, box.bottom - box.top) < 23.5;
  const distance = (from, box) => Math.hypot(
    Math.max(box.left - from.x, 0, from.x - box.right), Math.max(box.top - from.y, 0, from.y - box.bottom));
  const meets = (small, other) => other.node !== small.node && !small.node.contains(other.node)
    && !other.node.contains(small.node) && (distance(small, other) < 11.5
    || (isSmall(other) && Math.hypot(small.x - other.x, small.y - other.y) < 23.5));
  return targets.filter((box) => isSmall(box) && !isInSentence(box.node))
    .filter((box) => targets.some((other) => meets(box, other)))
    .map((box) => `${box.right - box.left} x ${box.bottom - box.top}: ${box.node.outerHTML.slice(0, 160)}`);
}"""
# Returns the focused element, if nothing of it is on top.
OBSCURED = """() => {
  const node = document.activeElement;
  const steps = [0.02, 0.25, 0.5, 0.75, 0.98];
  const isOnTop = (x, y) => {
    const top = document.elementFromPoint(x, y);
    const isLabel = [...(node.labels ?? [])].some((label) => label.contains(top));
    return top && (node.contains(top) || top.contains(node) || isLabel);
  };
  const boxes = [...node.getClientRects()];
  if (node === document.body || boxes.some((box) => steps.some((across) => steps.some((down) =>
    isOnTop(box.left + box.width * across, box.top + box.height * down))))) return "";
  const { left, top, width, height } = node.getBoundingClientRect();
  const above = document.elementFromPoint(left + width / 2, top + height / 2);
  return `${left} ${top} ${width} ${height} ${node.outerHTML.slice(0, 160)} is below ${above?.outerHTML.slice(0, 80)}`;
}"""
# Returns whether the focus was not here before.
MARK = """() => {
  const isNew = !document.activeElement.dataset.tabbed;
  document.activeElement.dataset.tabbed = "yes";
  return isNew;
}"""


@pytest.fixture
def thread(administrator, visit, endpoint) -> Page:
    """Return the page of a thread with a recalled passage, a source and an answer longer than the window."""
    page = visit(administrator, "/", reduced_motion="reduce")
    endpoint.script(KEY, answer="Noted.")
    begin_thread(page, "The key to the greenhouse hangs behind the clock.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    endpoint.script(KEY, answer=ANSWER)
    page.goto("/")
    begin_thread(page, "Where does the key to the greenhouse hang?")
    wait_for_answer(page)
    return page


@pytest.mark.parametrize("width", [320, 1280])
def test_wider_text_spacing_hides_no_text(thread, width):
    thread.set_viewport_size({"width": width, "height": 800})
    start = thread.url
    thread.goto("/documents")
    file = {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"# Keys"}
    thread.locator("input[type=file]").set_input_files(file)
    expect(thread.locator(".document-row").first).to_be_visible()
    found = []
    for path in [start, *MEMBER_PAGES, *ADMIN_PAGES]:
        thread.goto(path)
        before = thread.evaluate(CUT_OFF)
        thread.evaluate(SPACE_TEXT)
        found += [f"{path} {cut}" for cut in thread.evaluate(CUT_OFF) if cut not in before] + overflowing(thread)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [390, 1280])
def test_targets_have_24_pixels_or_the_room_of_24_pixels(thread, width):
    thread.set_viewport_size({"width": width, "height": 800})
    found = []
    for path in [thread.url, *MEMBER_PAGES, *ADMIN_PAGES]:
        thread.goto(path)
        found += [f"{path} {small}" for small in thread.evaluate(SMALL_TARGETS)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("width", "height", "key"),
    [(1280, 800, "Tab"), (390, 700, "Shift+Tab"), (320, 480, "Tab"), (320, 480, "Shift+Tab")],
)
def test_no_focused_element_of_a_thread_is_obscured(thread, width, height, key):
    thread.set_viewport_size({"width": width, "height": height})
    turn(thread).locator(".recall__panel > summary").click()
    thread.get_by_label("Message", exact=True).fill("A line\n" * 6)
    thread.locator("#main").focus()
    found = []
    count = 0
    for _ in range(150):
        thread.keyboard.press(key)
        if not thread.evaluate(MARK):
            break
        count += 1
        if obscured := thread.evaluate(OBSCURED):
            found.append(obscured)
    assert count > 15
    assert not found, "\n".join(found)


def test_visible_labels_are_in_the_names_of_their_controls(thread):
    found = []
    options = {"runOnly": {"type": "rule", "values": EXPERIMENTAL_RULES}}
    for path in [thread.url, *MEMBER_PAGES, *ADMIN_PAGES]:
        thread.goto(path)
        violations = Axe().run(thread, options=options).response["violations"]
        found += [f"{path} {each['id']}: {node['html'][:200]}" for each in violations for node in each["nodes"]]
    assert not found, "\n".join(found)


def test_single_key_shortcuts_can_be_switched_off(alice, visit):
    page = visit(alice, "/knowledge")
    shortcuts = page.locator("#shortcuts")
    words = page.locator("#knowledge-text")
    page.locator("#main").focus()
    page.keyboard.press("/")
    expect(words).to_be_focused()
    page.locator("#main").focus()
    page.keyboard.press("?")
    shortcuts.get_by_label("Shortcuts ? and /").uncheck()
    page.keyboard.press("Escape")

    for path in ("/knowledge", "/search"):
        page.goto(path)
        page.locator("#main").focus()
        page.keyboard.press("?")
        page.keyboard.press("/")
        expect(shortcuts).to_be_hidden()
        expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Control+/")
    expect(shortcuts.get_by_label("Shortcuts ? and /")).not_to_be_checked()

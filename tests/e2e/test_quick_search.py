"""Quick search, the command menu and shortcuts by keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, turn, wait_for_answer


def test_ctrl_k_finds_a_thread_and_enter_opens_it(visit, alice):
    page = visit(alice)
    path = begin_thread(page, "Where does the red boat lie in winter?")
    wait_for_answer(page)
    page.goto("/stats")

    page.keyboard.press("Control+k")
    page.locator("#quick-search-query").press_sequentially("red boat")
    expect(page.locator(".quick-search__group--thread [data-active]")).to_contain_text("Where does the red boat lie")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{path}")


def test_enter_that_chooses_a_word_of_an_input_method_opens_no_result(visit, alice):
    page = visit(alice)
    begin_thread(page, "Where does the green boat lie in winter?")
    wait_for_answer(page)
    page.goto("/stats")
    page.keyboard.press("Control+k")
    field = page.locator("#quick-search-query")
    field.press_sequentially("green boat")
    expect(page.locator(".quick-search__group--thread [data-active]")).to_contain_text("green boat")
    event = "{ key: 'Enter', isComposing: true, bubbles: true, cancelable: true }"
    assert field.evaluate(f"node => node.dispatchEvent(new KeyboardEvent('keydown', {event}))"), "nobody handled it"
    expect(field).to_be_visible()

    page.keyboard.press("Enter")
    page.wait_for_url("**/t/*")


def test_option_and_an_arrow_stay_in_a_text(visit, alice):
    page = visit(alice)
    path = begin_thread(page, "First")
    wait_for_answer(page)
    page.goto("/")
    begin_thread(page, "Second")
    wait_for_answer(page)
    box = page.get_by_label("Message", exact=True)
    box.fill("half a thought")
    event = "{ key: 'ArrowDown', altKey: true, bubbles: true, cancelable: true }"
    assert box.evaluate(f"node => node.dispatchEvent(new KeyboardEvent('keydown', {event}))"), "nobody handled it"

    box.fill("")
    box.press("Alt+ArrowDown")
    page.wait_for_url(f"**{path}")


def test_the_shortcuts_of_the_sidebar_work_while_a_narrow_window_hides_it(visit, alice):
    page = visit(alice, "/stats")
    page.set_viewport_size({"width": 500, "height": 700})
    expect(page.locator("#sidebar")).to_be_hidden()

    page.keyboard.press("Control+k")
    expect(page.locator("#quick-search-query")).to_be_focused()
    page.keyboard.type("boat")
    page.keyboard.press("Escape")
    expect(page.locator("#quick-search-query")).to_be_hidden()
    page.keyboard.press("Control+Shift+O")
    page.wait_for_url(f"{alice.url}/")


def test_the_command_menu_works_by_keyboard(visit, alice):
    page = visit(alice)
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("/vs")
    expect(page.locator("#slash-menu [aria-selected]")).to_contain_text("/vstats")
    box.press("Tab")
    expect(box).to_have_value("/vstats")
    box.press("Enter")
    expect(page.locator(".card")).to_contain_text("Exchanges you may read")
    expect(page.locator("#slash-menu")).to_be_hidden()


def test_the_list_of_shortcuts_opens_and_closes(visit, alice):
    page = visit(alice)
    # On a German keyboard, the slash is Shift and 7.
    for slash in ("Control+/", "Control+Shift+/"):
        page.keyboard.press(slash)
        expect(page.locator("#shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#shortcuts")).to_be_hidden()


def test_the_list_names_the_shortcuts_of_this_page_and_they_work(visit, alice, endpoint):
    page = visit(alice, "/settings")
    page.keyboard.press("?")
    shortcuts = page.locator("#shortcuts")
    expect(shortcuts.get_by_text("New thread")).to_be_visible()
    expect(shortcuts.get_by_text("Regenerate the last answer")).to_be_hidden()
    expect(shortcuts.get_by_text("Stop the answer")).to_be_hidden()
    page.keyboard.press("Escape")

    first = begin_thread(visit(alice), "The first thread")
    page.goto("/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    second = begin_thread(page, "The second thread")
    wait_for_answer(page)
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_url(f"**{first}")
    page.keyboard.press("Alt+ArrowUp")
    page.wait_for_url(f"**{second}")
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#toasts")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "All right."
    page.get_by_label("Message", exact=True).blur()
    page.keyboard.press("Control+Shift+L")
    box = page.get_by_label("Message", exact=True)
    expect(box).to_be_focused()
    page.keyboard.type("why?")
    expect(box).to_have_value("why?")
    page.keyboard.press("Control+Shift+Enter")
    expect(turn(page).locator(".turn__branch")).to_be_visible()
    expect(box).to_have_value("why?")
    page.keyboard.press("Control+Shift+F")
    page.wait_for_url("**/search")


def test_a_draft_survives_a_reload_in_its_own_thread(visit, alice):
    page = visit(alice)
    path = begin_thread(page, "Hello")
    wait_for_answer(page)
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("half a thought")
    page.reload()
    expect(box).to_have_value("half a thought")
    page.goto("/")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    page.goto(path)
    box.press("Enter")
    expect(turn(page, 1)).to_contain_text("half a thought")
    page.reload()
    expect(box).to_have_value("")

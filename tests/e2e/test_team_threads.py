"""Threads that several people use: marks for oneself, news, presence, typing and mentions."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import begin_thread, send_message, turn, wait_for_answer
from tests.groups import make_group, remove_from_group, start_thread


def link(page: Page, thread: str):
    return page.locator(f"#thread-{thread}")


def open_menu(page: Page, thread: str) -> None:
    link(page, thread).focus()
    page.keyboard.press("Shift+F10")
    expect(page.locator("dialog[open] .menu__heading").first).to_have_text("For you")


def test_the_menu_of_the_list_marks_a_thread_for_oneself(cato, administrator, alice, bob, visit):
    group = make_group(cato, administrator, alice, bob)
    first, second = (start_thread(alice, group, text) for text in ("The first", "The second"))
    page, others = visit(bob, "/"), visit(alice, "/")

    open_menu(page, first)
    expect(page.get_by_role("button", name="Pin")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Pinned for you.")
    expect(page.locator(f"#threads-pinned #thread-{first}")).to_be_visible()
    expect(others.locator("#threads-pinned li")).to_have_count(0)

    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(f"#threads-today #thread-{first}")).to_be_visible()

    open_menu(page, second)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Mute")).to_be_focused()
    page.keyboard.press("Enter")
    expect(link(page, second).get_by_role("img", name="muted")).to_be_visible()
    link(page, second).hover()
    page.get_by_label("Menu of “The second”").click()
    page.get_by_role("button", name="Archive").click()
    expect(link(page, second)).to_have_count(0)
    expect(page.get_by_role("link", name="Archived 1")).to_be_visible()
    page.get_by_role("link", name="Archived 1").click()
    expect(page.locator(".thread-list")).to_contain_text("The second")


def test_a_dialog_has_a_name_and_focuses_the_field_or_the_safe_choice(alice, visit):
    page = visit(alice, "/")
    thread = begin_thread(page, "Who has the key?").removeprefix("/t/")
    # Until then, the entry in the list is replaced.
    wait_for_answer(page)
    open_menu(page, thread)
    page.get_by_role("link", name="Rename…").last.click()
    expect(page.get_by_role("dialog", name="Rename this thread")).to_be_visible()
    expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    page.keyboard.press("Escape")
    open_menu(page, thread)
    page.get_by_role("link", name="Delete…").last.click()
    expect(page.get_by_role("dialog", name="Delete “Who has the key?”?")).to_be_visible()
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()


def test_a_link_that_is_replaced_or_moved_keeps_the_focus(cato, administrator, alice, bob, visit):
    group = make_group(cato, administrator, alice, bob)
    first, second = (start_thread(alice, group, text) for text in ("The first", "The second"))
    page = visit(bob, "/")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    link(page, first).focus()
    alices_page = visit(alice, f"/t/{first}")
    send_message(alices_page, "Once more")
    wait_for_answer(alices_page)
    expect(page.locator("#threads-today li").first).to_have_id(f"listed-{first}")
    expect(link(page, first)).to_be_focused()
    expect(link(page, first).get_by_role("img", name="answering")).to_have_count(0)
    expect(link(page, first)).to_be_focused()
    expect(page.locator(f"#listed-{first}")).to_have_count(1)
    third = start_thread(alice, group, "The third")
    expect(page.locator("#threads-today li").first).to_have_id(f"listed-{third}")
    expect(link(page, first)).to_be_focused()
    assert not problems
    assert second in page.locator("#threads-today").inner_html()


def test_a_thread_that_is_renamed_elsewhere_has_its_new_name_here(alice, visit):
    page = visit(alice, "/")
    thread = begin_thread(page, "Who has the key?").removeprefix("/t/")
    wait_for_answer(page)
    alice.post(f"/t/{thread}/rename", {"title": "The key"})
    expect(link(page, thread)).to_have_text("The key")
    expect(page.locator("#thread-title")).to_have_text("The key")
    expect(page).to_have_title("The key · Cato")


def test_a_change_before_the_socket_is_open_is_in_the_list(alice, visit):
    thread = alice.send_message("Who has the key?")
    page = visit(alice, "/documents")
    held: list[Route] = []
    page.route("**/hx-ws*", lambda route: held.append(route))
    page.goto("/documents", wait_until="commit")
    expect(link(page, thread)).to_be_visible()
    alice.post(f"/t/{thread}/rename", {"title": "The key"})
    page.wait_for_timeout(1000)
    for script in held:
        script.continue_()

    expect(link(page, thread)).to_have_text("The key")


def test_a_page_whose_thread_is_lost_says_so_and_keeps_the_draft(cato, administrator, alice, bob, visit):
    group = make_group(cato, administrator, alice, bob)
    thread = start_thread(alice, group, "Who has the key?")
    page = visit(bob, f"/t/{thread}")
    wait_for_answer(page)
    page.get_by_label("Message", exact=True).fill("I think")
    remove_from_group(cato, administrator, group, bob)

    expect(page.get_by_text("Check the link or ask the person who shared it.")).to_be_visible()
    expect(page.get_by_text("Who has the key?")).to_have_count(0)
    assert page.evaluate("Object.values(localStorage)").count("I think") == 1


def test_a_new_message_moves_the_open_thread_up_unless_it_is_pinned(alice, visit):
    page = visit(alice, "/")
    first = begin_thread(page, "The first").removeprefix("/t/")
    page.goto("/")
    second = begin_thread(page, "The second").removeprefix("/t/")
    wait_for_answer(page)
    page.goto(f"/t/{first}")
    expect(page.locator("#threads-today li").first).to_have_id(f"listed-{second}")
    send_message(page, "Once more")
    expect(page.locator("#threads-today li").first).to_have_id(f"listed-{first}")

    open_menu(page, second)
    page.keyboard.press("Enter")
    expect(page.locator(f"#threads-pinned #listed-{second}")).to_be_visible()
    page.goto(f"/t/{second}")
    send_message(page, "And again")
    wait_for_answer(page)
    expect(page.locator(f"#threads-pinned #listed-{second}")).to_be_visible()
    expect(page.locator(f"#listed-{second}")).to_have_count(1)


def test_what_came_since_the_last_visit_is_marked_and_shown_first(cato, administrator, alice, bob, endpoint, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    page = visit(bob, f"/t/{thread}")
    expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
    expect(page.locator("#news")).to_have_count(0)
    page.goto("/settings")
    page.wait_for_timeout(4000)  # presence is recorded every three seconds
    endpoint.script("cato", answer="One line.\n\n" * 40)
    alices_page = visit(alice, f"/t/{thread}")
    for text in ("It hangs behind the clock", "No, in the shed"):
        send_message(alices_page, text)
        expect(turn(alices_page).locator(".turn__message-text")).to_have_text(text)
        wait_for_answer(alices_page)

    page.goto(f"/t/{thread}")
    news = page.locator("#news")
    expect(news).to_contain_text("New since your last visit,")
    expect(page.locator("#news + .turn .turn__message-text")).to_have_text("It hangs behind the clock")
    top = news.evaluate("node => node.getBoundingClientRect().top")
    assert 90 <= top <= 102, top
    page.reload()
    expect(turn(page)).to_be_visible()
    expect(page.locator("#news")).to_have_count(0)


HOLD_MESSAGES = """() => {
    const send = WebSocket.prototype.send;
    const held = [];
    WebSocket.prototype.send = function (text) { held.push(() => send.call(this, text)); };
    window.release = () => { WebSocket.prototype.send = send; for (const each of held) each(); };
}"""


def test_an_answer_that_arrives_with_the_first_synchronisation_is_read(
    cato, administrator, alice, bob, endpoint, visit
):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    alices_page, elsewhere, page = visit(alice, f"/t/{thread}"), visit(bob, "/documents"), visit(bob, "/documents")
    wait_for_answer(alices_page)
    endpoint.script("cato", tokens=3000, token_delay=0.02)
    send_message(alices_page, "Tell me everything")
    stop = alices_page.get_by_role("button", name="Stop the answer")
    expect(turn(alices_page)).to_contain_text("word3")
    page.add_init_script(f"({HOLD_MESSAGES})()")
    page.goto(f"/t/{thread}")
    expect(turn(page).locator(".turn__message-text")).to_have_text("Tell me everything")
    stop.click()
    wait_for_answer(alices_page)
    unread = elsewhere.locator(f"#thread-{thread} .sidebar__unread-dot")
    expect(unread).to_be_visible()
    page.evaluate("release()")
    wait_for_answer(page)
    expect(unread).to_have_count(0)


def test_turns_that_come_while_one_reads_above_are_counted(cato, administrator, alice, bob, endpoint, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    endpoint.script("cato", answer="One line.\n\n" * 60)
    page, alices_page = visit(bob, f"/t/{thread}"), visit(alice, f"/t/{thread}")
    send_message(page, "Tell me everything")
    wait_for_answer(page)
    page.evaluate("scrollTo(0, 0)")
    button = page.get_by_role("button", name=re.compile("Jump to latest"))
    expect(button).to_be_visible()
    send_message(alices_page, "And me")
    expect(button).to_have_accessible_name("Jump to latest, 1 new")
    assert page.evaluate("scrollY") < 10, "nothing moves"
    button.click()
    expect(button).to_be_hidden()


def test_others_see_who_types_and_whose_question_is_answered(cato, administrator, alice, bob, endpoint, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    alices_page, bobs_page = visit(alice, f"/t/{thread}"), visit(bob, f"/t/{thread}")
    wait_for_answer(bobs_page)
    activity = bobs_page.locator("#activity")
    alices_page.get_by_label("Message", exact=True).press_sequentially("I think")
    expect(activity).to_contain_text("Alice Owner is typing")
    expect(alices_page.locator("#activity [data-typing]")).to_be_empty()

    endpoint.script("cato", tokens=400, token_delay=0.02)
    alices_page.get_by_label("Message", exact=True).press("Enter")
    expect(activity).to_contain_text(re.compile(r"Answering Alice Owner\u200e, \d+ s"))
    expect(activity).not_to_contain_text("typing")
    expect(bobs_page.locator("#live-region")).to_have_text("New message from Alice Owner")
    expect(alices_page.locator("#activity [data-answering]")).to_be_empty()
    expect(bobs_page.locator("#live-region")).to_have_text("Answer to Alice Owner complete.")
    expect(alices_page.locator("#live-region")).to_have_text("Cato has answered.")
    expect(activity.locator("[data-answering]")).to_be_empty()


def test_who_does_not_show_presence_sees_none(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    settings = visit(bob, "/settings")
    settings.locator("form[action$='/presence']").get_by_role("button", name="Switch off").click()
    expect(settings.locator(".toast")).to_contain_text("You are not shown.")
    alices_page, bobs_page = visit(alice, f"/t/{thread}"), visit(bob, f"/t/{thread}")
    bobs_page.get_by_label("Message", exact=True).press_sequentially("I think so")
    bobs_page.wait_for_timeout(4000)
    expect(alices_page.locator("#presence li")).to_have_count(0)
    expect(alices_page.locator("#activity [data-typing]")).to_be_empty()

    settings.locator("form[action$='/presence']").get_by_role("button", name="Switch on").click()
    expect(settings.locator(".toast")).to_contain_text("Others see when you are viewing a thread.")
    expect(alices_page.locator("#presence")).to_contain_text("Bob Team, viewing now")
    bobs_page.goto("/")
    expect(alices_page.locator("#presence")).to_contain_text("Bob Team, last seen", timeout=25_000)


def test_a_mention_is_completed_marked_notified_and_listed(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    page, elsewhere = visit(alice, f"/t/{thread}"), visit(bob, "/documents")
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("Ask @team")
    option = page.get_by_role("option", name=re.compile("Bob Team")).first
    expect(option).to_have_attribute("aria-selected", "true")
    expect(option).to_contain_text("has access")
    box.press("Enter")
    expect(box).to_have_value("Ask @Bob Team ")
    box.press("Backspace")
    box.press("Backspace")
    expect(box).to_have_value("Ask ")
    box.press_sequentially("@bob")
    box.press("Tab")
    box.press_sequentially("please")
    box.press("Enter")
    expect(turn(page).locator(".mention")).to_have_text("@Bob Team")

    expect(elsewhere.locator(".toast[data-mention]")).to_contain_text("Alice Owner mentioned you")
    expect(elsewhere.get_by_role("link", name="Mentions 1 new")).to_be_visible()
    elsewhere.get_by_role("link", name="Mentions 1 new").click()
    expect(elsewhere.locator(".mention-list__item:has(.mention-list__new)")).to_contain_text("Ask @Bob Team please")
    elsewhere.locator(".mention-list").get_by_role("link", name="Who has the key?").click()
    expect(turn(elsewhere).locator(".mention")).to_have_text("@Bob Team")
    elsewhere.goto("/mentions")
    expect(elsewhere.locator(".mention-list__new")).to_have_count(0)
    expect(elsewhere.locator("#mentions-link .sidebar__count")).to_have_count(0)


def test_the_selected_option_of_each_list_is_named_at_the_box(cato, administrator, alice, bob, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    box = visit(alice, f"/t/{thread}").get_by_label("Message", exact=True)
    for start, more in (("@bo", "b"), ("/vq", "u")):
        box.fill("")
        box.press_sequentially(start)
        selected = box.page.locator("[role=option][aria-selected]:visible")
        expect(selected).to_have_count(1)
        box.press_sequentially(more)
        expect(selected).to_have_count(1)
        expect(box).to_have_attribute("aria-activedescendant", str(selected.get_attribute("id")))


NAME_OF_OPTION = "option => option.dataset.name ?? option.dataset.command"


@pytest.mark.parametrize("sign", ["@", "/"])
def test_the_selected_option_of_a_long_list_stays_in_view_while_it_is_narrowed(visit, alice, sign):
    people = "".join(
        f'<li role="option" id="person-{letter}" data-name="{letter}da Team"><bdi>{letter}da Team</bdi></li>'
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    )
    page = visit(alice)
    page.route("**/mentions/people*", lambda route: route.fulfill(body=f"<ul>{people}</ul>", content_type="text/html"))
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially(sign)
    selected = page.locator("[role=option][aria-selected]:visible")
    expect(selected).to_have_count(1)
    box.press("ArrowUp")
    expect(selected).to_be_in_viewport(ratio=1)
    name = selected.evaluate(NAME_OF_OPTION)

    box.press_sequentially(name[:3])
    for _letter in name[:3]:
        box.press("Backspace")

    expect(box).to_have_value(sign)
    assert selected.evaluate(NAME_OF_OPTION) == name
    expect(selected).to_be_in_viewport(ratio=1)


def test_who_cannot_read_the_thread_is_named_as_text(cato, administrator, alice, bob, visit):
    page = visit(alice, "/")
    thread = begin_thread(page, "Mine alone")
    elsewhere = visit(bob, "/")
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("@bob")
    expect(page.get_by_role("option", name=re.compile("Bob Team")).first).to_contain_text("no access")
    box.press("Enter")
    expect(box).to_have_value("Bob Team ")
    expect(page.locator("#mention-note")).to_contain_text("Bob Team cannot read this thread.")
    expect(page.get_by_role("link", name="Move thread…")).to_have_attribute("href", f"{thread}/move")
    page.get_by_role("button", name="Keep as text").click()
    expect(page.locator("#mention-note")).to_be_hidden()
    box.press_sequentially("@bob", delay=20)
    box.press("Escape")
    expect(box).to_have_value("Bob Team @bob")
    box.press("Enter")
    expect(turn(page).locator(".turn__message-text")).to_have_text("Bob Team @bob")
    expect(turn(page).locator(".mention")).to_have_count(0)
    assert elsewhere.locator(".toast[data-mention]").count() == 0


def test_a_mention_that_is_seen_is_counted_in_no_page(cato, administrator, alice, bob, endpoint, visit):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    page, elsewhere = visit(alice, f"/t/{thread}"), visit(bob, "/documents")
    box = page.get_by_label("Message", exact=True)
    box.fill("Ask @Bob Team please")
    box.press("Enter")
    expect(elsewhere.locator(".toast[data-mention]")).to_contain_text("Alice Owner mentioned you")
    expect(elsewhere.locator("#mentions-link .sidebar__count")).to_be_visible()
    watched = visit(bob, f"/t/{thread}")
    expect(elsewhere.locator("#mentions-link .sidebar__count")).to_have_count(0)

    # In the thread itself it is seen at once, while the answer is still in progress.
    wait_for_answer(watched)
    watched.evaluate("""() => document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
        if (detail.target.id === "toasts") document.body.dataset.noticed = "yes";
    })""")
    endpoint.script("cato", tokens=3000, token_delay=0.02)
    box.fill("And @Bob Team again")
    box.press("Enter")
    expect(watched.locator("body[data-noticed]")).to_be_visible()
    expect(watched.locator("#mentions-link .sidebar__count")).to_have_count(0)
    expect(watched.locator(".toast[data-mention]")).to_have_count(0)
    expect(elsewhere.locator("#mentions-link .sidebar__count")).to_have_count(0)
    page.get_by_role("button", name="Stop the answer").click()

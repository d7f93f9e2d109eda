"""What a screen reader announces, and where the focus is, when the footer of a turn is replaced."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer

AS_FRAME = """footer => {
  const copy = footer.cloneNode(true);
  copy.setAttribute("hx-swap-oob", "true");
  return copy.outerHTML;
}"""


@pytest.fixture
def sockets() -> list[WebSocketRoute]:
    """Return the sockets that the page has opened."""
    return []


@pytest.fixture
def page(visit, alice, sockets) -> Page:
    """Return the page of a thread whose answer was complete when it was loaded."""
    page = visit(alice)
    path = begin_thread(page, "First")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    page.goto("/")

    def connect(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket("**/ws/**", connect)
    page.goto(path)
    wait_for_answer(page)
    return page


def replace_footer(page: Page, socket: WebSocketRoute) -> None:
    """Send the page the footer of its first turn, as it does when memory has stored the turn."""
    footer = turn(page, 0).locator(".turn__footer")
    former = footer.element_handle()
    socket.send(footer.evaluate(AS_FRAME))
    page.wait_for_function("footer => !footer.isConnected", arg=former)
    page.evaluate("() => new Promise(requestAnimationFrame)")


def announcement(page: Page):
    return page.locator("#live-region")


def test_an_answer_is_announced_once_and_one_that_was_complete_before_is_not(page, sockets):
    replace_footer(page, sockets[-1])
    expect(announcement(page)).to_have_text("")
    send_message(page, "Second")
    expect(announcement(page)).to_have_text("Cato has answered.")


def test_an_answer_that_is_retried_is_announced_again(page, endpoint):
    endpoint.script(KEY, mode="error-500")
    send_message(page, "Second")
    reason = turn(page, 1).locator(".turn__status-text")
    expect(announcement(page)).to_have_text(str(reason.text_content()))
    endpoint.script(KEY, answer="All right.")
    turn(page, 1).get_by_role("button", name="Retry").click()

    expect(announcement(page)).to_have_text("Cato has answered.")


@pytest.mark.parametrize("name", ["Copy the answer", "Regenerate"])
def test_a_control_keeps_the_focus_when_its_footer_is_replaced(page, sockets, name):
    control = turn(page, 0).get_by_role("button", name=name)
    control.focus()
    replace_footer(page, sockets[-1])

    expect(control).to_be_focused()

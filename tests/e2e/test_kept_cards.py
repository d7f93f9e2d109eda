"""Cards of what commands added: in every open page of the thread, and after a reload."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import send_message, turn, wait_for_answer
from tests.groups import make_group, start_thread


def test_a_card_appears_in_open_pages_and_stays_after_a_reload(cato, administrator, alice, bob, visit):
    group = make_group(cato, administrator, alice, bob)
    ((name,),) = cato.sql("SELECT name FROM memory_space WHERE id = ?", group.replace("-", ""))
    thread = start_thread(alice, group, "Hello crew")
    page, other = visit(alice, f"/t/{thread}"), visit(bob, f"/t/{thread}")
    wait_for_answer(page)
    expect(turn(other).locator(".answer__blocks")).to_have_text("All right.")

    send_message(page, f'/vadd The mast is oiled in June. --space "{name}"')
    expect(other.locator(".card--kept")).to_contain_text("The mast is oiled in June.")
    send_message(page, "/vadd My own locker is green.")
    expect(page.locator(".card--kept")).to_have_count(2)
    expect(other.locator(".card--kept")).to_have_count(1)

    page.reload()
    other.reload()
    expect(page.locator(".card--kept")).to_have_count(2)
    expect(other.locator(".card--kept")).to_have_count(1)


def test_a_long_name_leaves_the_command_of_a_card_on_one_line(cato, administrator, visit):
    captain = cato.join(administrator, "Captain Sebastian Grosshans-Muehlenbrueck")
    thread = captain.send_message("Hello")
    page = visit(captain, f"/t/{thread}", viewport={"width": 390, "height": 800})
    wait_for_answer(page)
    send_message(page, "/vadd The mast is oiled in June.")
    card = page.locator(".card--kept")
    expect(card).to_contain_text("The mast is oiled in June.")
    assert card.locator("code").first.bounding_box()["height"] <= 30
    assert card.locator(".card__header").evaluate("node => node.scrollWidth <= node.clientWidth")

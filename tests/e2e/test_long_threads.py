"""A long thread opens at its end and loads earlier turns without moving the visible ones."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.e2e.conftest import KEY, send_message, turn, wait_for_answer
from tests.e2e.tcp_relay import relay_to
from tests.server import wait_for

TURNS = 70


def long_thread(cato, person, tmp_path) -> str:
    """Import a thread of many turns; return its path."""
    messages = [
        {"id": f"turn-{n}", "message": f"Question {n}", "answer": f"Answer {n}.\n\n" * 3, "state": "complete"}
        for n in range(TURNS)
    ]
    thread = {"id": "long", "title": "A long thread", "is_remembered": False}
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"format": "cato-thread", "version": 1, "thread": thread, "turns": messages}))
    cato.manage("import_history", str(file), "--user", person.email)
    page = person.get("/threads").text
    return "/t/" + page.split('href="/t/')[1].split('"')[0]


def test_earlier_turns_load_while_scrolling_up_without_moving_the_page(visit, alice, cato, tmp_path):
    page = visit(alice, long_thread(cato, alice, tmp_path))
    expect(turn(page)).to_contain_text(f"Question {TURNS - 1}")
    expect(page.locator("article.turn")).to_have_count(20)
    for count in (40, 60, 70):
        first = turn(page, 0)
        positions = first.evaluate(
            "node => { scrollTo(0, 0); return node.querySelector('.turn__message-text').textContent; }"
        )
        expect(page.locator("article.turn")).to_have_count(count)
        line = page.locator("article.turn", has=page.get_by_text(positions, exact=True))
        wait_for(lambda line=line: abs(line.bounding_box()["y"] - 60) < 150, "the line to stay in view", seconds=30)
    expect(turn(page, 0)).to_contain_text("Question 0")
    expect(page.get_by_text("Load earlier turns")).to_have_count(0)


def test_a_page_that_has_missed_too_much_is_loaded_again_when_it_is_connected(visit, alice, cato, tmp_path):
    path = long_thread(cato, alice, tmp_path)
    with relay_to(cato.url) as relay:
        page = visit(alice, path, url=relay.url)
        for count in (40, 60, TURNS):
            page.evaluate("scrollTo(0, 0)")
            expect(page.locator("article.turn")).to_have_count(count)
        relay.cut()
        # As if sixty messages had been posted since then.
        page.evaluate("[...document.querySelectorAll('article.turn')].slice(10).forEach((turn) => turn.remove())")
        expect(turn(page)).to_contain_text("Question 9")
        relay.restore()

        expect(turn(page)).to_contain_text(f"Question {TURNS - 1}", timeout=30_000)
        expect(page.locator("article.turn")).to_have_count(20)
        expect(page.get_by_text("Load earlier turns")).to_have_count(1)


def test_new_messages_do_not_move_a_reader_away_from_earlier_turns(visit, alice, cato, endpoint, tmp_path):
    endpoint.script(KEY, answer="A long answer. " * 60, token_delay=0.02)
    page = visit(alice, long_thread(cato, alice, tmp_path))
    send_message(page, "One more")
    expect(turn(page).locator(".answer__streaming")).to_contain_text("A long answer")
    page.mouse.move(600, 300)
    page.mouse.wheel(0, -900)
    line = page.locator("article.turn", has=page.get_by_text(f"Question {TURNS - 2}", exact=True))
    before = line.bounding_box()["y"]
    wait_for_answer(page, timeout=30_000)

    assert abs(line.bounding_box()["y"] - before) < 2
    page.get_by_role("button", name="Jump to latest").click()
    expect(turn(page).locator(".turn__actions")).to_be_in_viewport()

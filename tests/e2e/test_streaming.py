"""Streaming in the browser: rendered as it grows, identical in every browser, and stopped on request."""

from __future__ import annotations

import json
import random
import re
import time

from playwright.sync_api import Page, WebSocketRoute, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.e2e.tcp_relay import relay_to
from tests.server import wait_for

ANSWER = """Here is the plan for the **greenhouse**.

```python
def water(litres: int) -> str:
    return f"{litres} litres"
```

1. Open the tap behind the clock
2. Count slowly to ten and then to twenty
3. Close it again

| Day | Litres |
|-----|-------:|
| Monday | 12 |
| Tuesday | 14 |

> Nobody waters at noon.

Then there is a paragraph that goes on for a while, so that somebody has the time to come back to it, word by word,
until at last everything that had to be said about the watering of a greenhouse has been said, and that is the end.
"""
# Times of pressing Stop and of the last visible stop, without the driver's overhead; and turns without what differs
# between browsers: transient classes and local times.
DRAWN = """() => {
  const turns = document.getElementById("turns").cloneNode(true);
  for (const time of turns.querySelectorAll("time")) { time.textContent = ""; time.removeAttribute("title"); }
  for (const node of turns.querySelectorAll("[class*='htmx-']")) {
    node.classList.remove("htmx-added", "htmx-settling", "htmx-swapping", "htmx-request");
  }
  for (const node of turns.querySelectorAll("[data-revision]")) node.removeAttribute("data-revision");
  for (const node of turns.querySelectorAll("[class]")) {
    node.setAttribute("class", [...node.classList].join(" "));
    if (!node.classList.length) node.removeAttribute("class");
  }
  return turns.innerHTML.replace(/\\s+/g, " ").replace(/> </g, "><").trim();
}"""


def test_markdown_and_code_are_rendered_while_the_answer_streams(visit, alice, endpoint):
    endpoint.script(KEY, answer=ANSWER, token_delay=0.1)
    page = visit(alice)
    begin_thread(page, "How do we water?")

    expect(turn(page).locator(".answer__blocks strong")).to_have_text("greenhouse")
    expect(turn(page).locator(".answer__blocks .highlight span").first).to_be_visible()
    expect(turn(page).locator(".answer__streaming--live")).to_be_visible()
    expect(page.get_by_role("button", name="Stop the answer")).to_be_visible()
    wait_for_answer(page)
    expect(turn(page).locator(".answer__blocks > .answer__block")).to_have_count(6)
    expect(turn(page).locator(".answer__blocks td.answer__cell--end").first).to_have_text("12")
    expect(turn(page).locator(".answer__streaming")).to_be_empty()
    expect(page.get_by_role("button", name="Stop the answer")).to_have_count(0)


def test_a_long_reasoning_is_visible(visit, alice, endpoint):
    endpoint.script(KEY, answer="At last.", first_delay=4.5)
    page = visit(alice)
    begin_thread(page, "Think about it")

    expect(turn(page).locator(".answer__phase")).to_have_text("Thinking…")
    expect(turn(page).locator(".answer__phase")).to_have_text(re.compile(r"Thinking…\s+[34] s"))
    expect(turn(page).locator(".answer__blocks")).to_have_text("At last.")


def test_three_browsers_end_with_the_same_page_as_a_fresh_one(visit, alice, cato, endpoint):
    endpoint.script(KEY, answer=ANSWER, token_delay=0.12)
    writer = visit(alice)
    path = begin_thread(writer, "How do we water?")
    with relay_to(cato.other_url) as relay:
        cut_off = visit(alice, path, url=relay.url)
        expect(turn(cut_off).locator(".answer__blocks .code-block")).to_be_visible()
        relay.cut()
        time.sleep(0.5)  # the page still shows the frame that was on its way
        then = turn(cut_off).locator(".answer").inner_text()
        latecomer = visit(alice, path, url=cato.other_url)
        expect(turn(writer).locator(".answer__blocks ol")).to_be_visible()
        writer.reload()
        time.sleep(5.0)  # duration of the interruption
        assert turn(cut_off).locator(".answer").inner_text() == then
        relay.restore()

        pages = {"the writer's": writer, "the latecomer's": latecomer, "the one that was cut off": cut_off}
        for page in pages.values():
            expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered", timeout=30_000)
        fresh = visit(alice, path).evaluate(DRAWN)
        assert {name: page.evaluate(DRAWN) for name, page in pages.items()} == dict.fromkeys(pages, fresh)
    assert fresh.count("Nobody waters at noon.") == 1
    assert fresh.count("<article") == 1


def test_a_page_whose_sync_request_precedes_its_message_still_shows_the_complete_turn(visit, alice, endpoint):
    page = visit(alice)
    begin_thread(page, "The greenhouse key hangs behind the clock in the hall.")
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    delayed = []

    def on_a_slow_line(near: WebSocketRoute) -> None:
        far = near.connect_to_server()
        near.on_message(lambda content: delayed.append((far, content)))

    page.goto("/")
    path = begin_thread(page, "Hello")
    wait_for_answer(page)
    page.route_web_socket("**/ws/**", on_a_slow_line)
    page.goto(path)
    wait_for(lambda: page.title() and delayed, "the page to have told what it has")
    endpoint.script(KEY, answer="Behind the clock.", first_delay=4)
    send_message(page, "Where do we keep the thing that opens the glass house?")
    expect(turn(page, 1).locator(".answer__streaming")).to_contain_text("Recalling…")
    wait_for(lambda: "Thinking…" in alice.thread_page(path.split("/")[-1]), "the model to be asked")
    for far, content in delayed:
        far.send(content)

    expect(turn(page, 1).locator(".recall__count")).to_have_text("1 recalled")
    expect(turn(page, 1).locator(".answer__blocks")).to_have_text("Behind the clock.")
    expect(page.locator("article.turn")).to_have_count(2)


def test_a_selection_in_a_finished_paragraph_survives_streaming(visit, alice, endpoint):
    endpoint.script(KEY, answer=ANSWER, token_delay=0.06)
    page = visit(alice)
    begin_thread(page, "How do we water?")
    first = turn(page).locator(".answer__blocks > .answer__block").first
    expect(first).to_be_visible()
    first.evaluate("node => getSelection().selectAllChildren(node)")
    selected = page.evaluate("() => getSelection().toString()")

    expect(turn(page).locator(".answer__blocks > .answer__block")).to_have_count(6)
    expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    assert "Here is the plan" in selected
    assert page.evaluate("() => getSelection().toString()") == selected


def test_a_frame_restyles_only_new_elements_however_long_the_answer_is(visit, alice, endpoint):
    # It goes on for a while after the last one that is measured: its end restyles other parts of the page.
    paragraphs = "\n\n".join(f"Paragraph {number} says a little." for number in range(200))
    endpoint.script(KEY, answer=f"# All of it\n\n{paragraphs}", token_delay=0.01)
    page = visit(alice)
    begin_thread(page, "Tell me everything")

    early = restyled_elements(page, 5, 25)
    late = restyled_elements(page, 110, 145)
    # 16 if nothing else runs. Fewer in a busy moment, in which a frame brings several paragraphs.
    assert late <= 1.5 * max(early, 16)


def restyled_elements(page: Page, first: int, last: int) -> float:
    """Return the number of restyled elements for each of these paragraphs that arrives.

    Frames bring more paragraphs each on a busy machine.
    """
    browser = page.context.browser
    assert browser is not None
    expect(turn(page)).to_contain_text(f"Paragraph {first} ")
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    expect(turn(page)).to_contain_text(f"Paragraph {last} ")
    content = json.loads(browser.stop_tracing())["traceEvents"]
    counts = [event["args"]["elementCount"] for event in content if "elementCount" in event.get("args", {})]
    assert len(counts) > 10
    return sum(counts) / (last - first)


def test_a_message_sent_during_an_answer_appears_once_and_is_answered_next(visit, alice, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer this one.", token_delay=0.5)
    page = visit(alice)
    begin_thread(page, "First")
    send_message(page, "Second")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(turn(page, 1).locator(".answer__streaming")).to_contain_text("Queued until the previous answer ends")
    expect(turn(page, 1)).to_be_hidden()
    expect(page.locator(".queue__text")).to_have_text("Second")

    for number in (0, 1):
        expect(turn(page, number).locator(".answer__blocks")).to_have_text("Slowly but surely I answer this one.")
        expect(turn(page, number)).to_be_visible()
    expect(page.locator("article.turn")).to_have_count(2)


def test_the_stop_button_is_not_replaced_while_it_is_pressed(visit, alice, endpoint):
    endpoint.script(KEY, tokens=6000, token_delay=0.01)
    page = visit(alice)
    begin_thread(page, "Count as far as you can")
    stop = page.locator(".send-button--stop")
    expect(turn(page)).to_contain_text("word3")
    box = stop.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    path = page.url.partition("#")[0].removeprefix(alice.url)
    alice.send_message("One more that waits", path.removeprefix("/t/"))
    expect(turn(page)).to_contain_text("Queued until the previous answer ends")
    page.mouse.up()
    expect(page.locator("article.turn").first.locator(".turn__status-text")).to_have_text("Stopped by Alice Owner")


def test_fifty_of_fifty_stops_take_effect_at_once_wherever_they_are_pressed(visit, alice, cato, endpoint):
    # Without Stop an answer would take a minute; benchmarks/stops.py measures the delay.
    endpoint.script(KEY, tokens=6000, token_delay=0.01)
    chance = random.Random(20)
    page = visit(alice)
    path = begin_thread(page, "Fifty stops, 0")
    elsewhere = visit(alice, path, url=cato.other_url)
    for number in range(50):
        if number:
            send_message(page, f"Fifty stops, {number}")
        expect(page.locator("article.turn")).to_have_count(number + 1)
        expect(page.locator(".send-button--stop")).to_be_visible()
        if number % 3 == 2:
            expect(elsewhere.locator(".send-button--stop")).to_be_visible()
        time.sleep(chance.uniform(0, 0.5))
        _stop(page, elsewhere, number)
        expect(turn(page).locator(".turn__status-text")).to_have_text("Stopped by Alice Owner")
        expect(page.locator(".send-button--stop")).to_have_count(0)
        expect(elsewhere.locator("article.turn")).to_have_count(number + 1)
        expect(turn(elsewhere).locator(".turn__status-text")).to_have_text("Stopped by Alice Owner")

    stopped = cato.sql("SELECT state, count(*) FROM chat_turn WHERE message LIKE ? GROUP BY state", "Fifty stops, %")
    assert stopped == [("stopped", 50)]


def _stop(page: Page, elsewhere: Page, number: int) -> None:
    """Stop with the button, with Escape, or with the button in another browser at another web process."""
    presser = elsewhere if number % 3 == 2 else page
    if number % 3 == 1:
        presser.keyboard.press("Escape")
    else:
        presser.get_by_role("button", name="Stop the answer").click()

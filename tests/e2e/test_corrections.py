"""An answer from memory is corrected: its source is superseded with one key, and the next thread knows."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.server import wait_for

SOURCE, QUESTION = "The office in Kiel has 23 desks.", "How many desks are there in the office in Kiel?"
CORRECTION = "No, that is outdated: it is 28 now."


def last_prompt(endpoint) -> str:
    streamed = [request for request in endpoint.requests(KEY) if request.get("stream")]
    return "\n".join(str(message["content"]) for message in streamed[-1]["messages"])


def test_a_correction_supersedes_a_source_for_later_answers_until_it_is_undone(visit, alice, endpoint):
    told = alice.send_message(SOURCE)
    wait_for(lambda: "Remembered</span>" in alice.thread_page(told), "the message to be remembered")
    page = visit(alice)
    endpoint.script(KEY, answer="It has 23 desks [1].")
    path = begin_thread(page, QUESTION)
    wait_for_answer(page)
    endpoint.script(KEY, answer="Thank you, noted.")
    send_message(page, CORRECTION)
    wait_for_answer(page)
    offer = turn(page).locator(".offer")
    expect(offer).to_contain_text("Supersede source 1 of the answer before?")
    expect(offer).to_contain_text(SOURCE)
    expect(turn(page, 0).locator(".offer")).to_have_count(0)

    offer.get_by_role("button", name="Supersede").press("Enter")
    expect(offer).to_contain_text("Superseded by this message. Answers to you use the message instead.")
    fresh = visit(alice, path)
    expect(turn(fresh).locator(".offer")).to_contain_text("Superseded by this message.")

    fresh.goto("/".join(fresh.url.split("/")[:3]))
    begin_thread(fresh, "Do we know how many desks the office in Kiel has?")
    wait_for_answer(fresh)
    passages = re.findall(r'<passage-\w+ number="(\d+)"([^>]*)>\n(.*?)\n</passage-', last_prompt(endpoint), re.DOTALL)
    number = next(number for number, _head, text in passages if "it is 28 now" in text)
    head = next(head for _number, head, text in passages if f"Alice Owner: {SOURCE}" in text)
    assert f'same_subject="superseded by {number}"' in head

    offer.get_by_role("button", name="Undo").press("Enter")
    expect(offer).to_contain_text("Supersede source 1 of the answer before?")
    offer.get_by_role("button", name="Dismiss").press("Enter")
    expect(offer).to_have_count(0)
    expect(turn(visit(alice, path)).locator(".turn__offer")).to_have_count(0)
